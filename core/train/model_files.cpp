// SPDX-License-Identifier: MIT
#include "core/train/model_files.h"

#include <set>

namespace ciuic::core {
namespace {

/// Fields that say how a model is stored or used, not what it is.
bool is_bookkeeping(std::string_view field) {
  return field == "dtype" || field == "use_cache" || field == "initializer_range";
}

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

ModelConfig model_of(const Archive& archive) {
  const std::optional<std::string> text = archive.get_blob("config.json");
  if (!text) {
    throw Failure(ExitCode::Storage, "it has no config.json, so it is no model", "",
                  {{"file", archive.uri()}});
  }
  try {
    return from_json(nlohmann::json::parse(*text), "config.json");
  } catch (const std::exception& e) {
    throw Failure(ExitCode::Storage, e.what(), "", {{"file", archive.uri()}});
  }
}

void check_same_model(const Archive& archive, const ModelConfig& expected) {
  const nlohmann::json is = expected.to_json();
  const nlohmann::json was = model_of(archive).to_json();
  std::string differences;
  for (const auto& [field, value] : is.items()) {
    const nlohmann::json other = was.value(field, nlohmann::json());
    if (!is_bookkeeping(field) && other != value) {
      differences += (differences.empty() ? "" : ", ") + field + " " + other.dump() + " there, " +
                     value.dump() + " here";
    }
  }
  if (!differences.empty()) {
    throw Failure(ExitCode::Storage, "this checkpoint is of another model: " + differences,
                  "give the run another run.output, or --resume none", {{"file", archive.uri()}});
  }
}

void check_tensors(const ArchiveSource& source, const ModelConfig& model, const std::string& file) {
  std::vector<std::string> problems;
  std::set<std::string, std::less<>> known;
  for (const BufferSpec& buffer : buffer_specs(model)) {
    known.insert("value/" + buffer.name);
  }
  for (const ParameterSpec& spec : parameter_specs(model)) {
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
