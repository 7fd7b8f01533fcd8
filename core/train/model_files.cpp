// SPDX-License-Identifier: MIT
#include "core/train/model_files.h"

#include <algorithm>
#include <set>

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>

#include <ciuic/view.hpp>

#include "core/train/hf_names.h"

namespace ciuic::core {
namespace {

const std::string kValue = "value/";
const std::string kMaster = "master/";

bool is_float(ciuic_dtype dtype) {
  return dtype.code == CIUIC_DTYPE_FLOAT || dtype.code == CIUIC_DTYPE_BFLOAT;
}

/// What the archive's own config.json says, or `otherwise` where it cannot be read: that is another
/// function's complaint.
ModelConfig stored_config(const ArchiveSource& source, const ModelConfig& otherwise) {
  try {
    const auto text = source.blob("config.json");
    return text ? from_json(nlohmann::json::parse(*text), "config.json") : otherwise;
  } catch (const std::exception&) {
    return otherwise;
  }
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

void check_tensors(const ArchiveSource& source, const ModelConfig& model, const std::string& file) {
  std::vector<std::string> problems;
  std::set<std::string, std::less<>> known;
  const auto check = [&](const std::string& name, const std::vector<int64_t>& shape,
                         bool is_needed) {
    known.insert(name);
    const ArchiveEntry* entry = source.find(kValue + name);
    entry = entry != nullptr ? entry : source.find(kMaster + name);
    if (entry == nullptr) {
      if (is_needed) {
        problems.push_back("missing: " + name);
      }
    } else if (entry->shape != shape) {
      problems.push_back(name + ": got " + shape_text(entry->shape) + ", expected " +
                         shape_text(shape));
    } else if (!is_float(entry->dtype)) {
      problems.push_back(name + ": got " + dtype_name(entry->dtype) +
                         ", expected a floating-point type");
    }
  };
  // A model without a single bias was trained without them; one that lacks some lost them.
  const std::vector<BufferSpec> buffers = buffer_specs(model);
  const bool has_biases = std::any_of(buffers.begin(), buffers.end(), [&](const BufferSpec& b) {
    return source.find(kValue + b.name) != nullptr;
  });
  for (const BufferSpec& buffer : buffers) {
    check(buffer.name, buffer.shape, has_biases);
  }
  for (const ParameterSpec& spec : parameter_specs(model)) {
    if (!spec.is_tied()) {
      check(spec.name, spec.shape, true);
    }
  }
  for (const HfCopy& copy : hf_copies(model)) {
    check(copy.name, copy.shape, false);
  }
  const ModelConfig stored = stored_config(source, model);
  for (const ArchiveEntry& entry : source.entries()) {
    if (!entry.key.starts_with(kValue)) {
      continue;
    }
    const std::string name = entry.key.substr(kValue.size());
    if (!known.contains(name) && !is_derived_in_hf(name) && !is_unused_mtp(name, stored, model)) {
      problems.push_back("belongs to no parameter: " + name);
    }
  }
  if (!problems.empty()) {
    throw tensors_failure(problems, file);
  }
}

void check_copies(const ArchiveSource& source, const ModelConfig& model, const std::string& file) {
  constexpr int64_t kElementsAtOnce = int64_t{1} << 20;
  std::vector<std::string> problems;
  for (const HfCopy& copy : hf_copies(model)) {
    if (source.find(kValue + copy.name) == nullptr) {
      continue;
    }
    const int64_t total = copy.shape[0] * copy.shape[1];
    for (int64_t begin = 0; begin < total; begin += kElementsAtOnce) {
      const int64_t count = std::min(kElementsAtOnce, total - begin);
      const Place place(copy.shape, begin);
      const at::Tensor one = at::empty({count}, at::kFloat);
      const at::Tensor other = at::empty({count}, at::kFloat);
      if (!source.read(kValue + copy.name, place.c(), one) ||
          !source.read(kValue + copy.parameter, place.c(), other) || !at::equal(one, other)) {
        problems.push_back(copy.name + ": differs from " + copy.parameter +
                           ", which it should repeat");
        break;
      }
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
