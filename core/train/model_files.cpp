// SPDX-License-Identifier: MIT
#include "core/train/model_files.h"

#include <set>

namespace ciuic::core {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t s : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(s);
  }
  return text + "]";
}

Failure tensors_failure(const std::vector<std::string>& problems, const std::string& file) {
  Failure failure(ExitCode::Storage,
                  std::to_string(problems.size()) + " tensors do not fit the model", "",
                  {{"file", file}});
  for (const std::string& problem : problems) {
    failure.detail(problem);
  }
  return failure;
}

}  // namespace

void check_tensors(const ArchiveSource& source, const ModelConfig& model, const std::string& file) {
  std::vector<std::string> problems;
  std::set<std::string, std::less<>> known;
  for (const BufferSpec& buffer : buffer_specs(model)) {
    known.insert("value/" + buffer.name);
  }
  for (const ParameterSpec& spec : parameter_specs(model)) {
    if (spec.is_tied()) {
      continue;
    }
    known.insert("value/" + spec.name);
    const ArchiveEntry* entry = source.find("value/" + spec.name);
    entry = entry != nullptr ? entry : source.find("master/" + spec.name);
    if (entry == nullptr) {
      problems.push_back("missing: " + spec.name);
    } else if (entry->shape != spec.shape) {
      problems.push_back(spec.name + ": got " + shape_text(entry->shape) + ", expected " +
                         shape_text(spec.shape));
    }
  }
  for (const ArchiveEntry& entry : source.entries()) {
    if (entry.key.starts_with("value/") && !known.contains(entry.key)) {
      problems.push_back("belongs to no parameter: " + entry.key.substr(6));
    }
  }
  if (!problems.empty()) {
    throw tensors_failure(problems, file);
  }
}

void load_expert_biases(const TensorSource& source,
                        const std::vector<std::pair<std::string, at::Tensor>>& biases) {
  for (const auto& [name, bias] : biases) {
    const Place place(bias.sizes().vec());
    if (!source.read("value/" + name, place.c(), bias)) {
      bias.zero_();
    }
  }
}

}  // namespace ciuic::core
