// SPDX-License-Identifier: MIT
//
// Where a Hugging Face folder and a model's parameters differ. The names are the same but for:
//   - copies: a multi-token-prediction layer repeats the embedding and the head, a tied model may
//     repeat its embedding as lm_head.weight; here each is one parameter;
//   - layers that config.json promises and the folder has not: transformers exports no
//     multi-token-prediction layer and still says num_nextn_predict_layers = 1;
//   - buffers of old exports that follow from the configuration.
// FP8 scales are the checkpoint plugin's business. No LibTorch.
//
// Source: README_WEIGHTS.md of DeepSeek-V3's published files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_config.h"
#include "core/plugin/checkpoint.h"

namespace ciuic::core {

/// A tensor of a folder that repeats a parameter.
struct HfCopy {
  std::string name;
  std::string parameter;
  std::vector<int64_t> shape;
  /// Is it written to a folder? All may be read, none must be there.
  bool is_exported = true;
};
std::vector<HfCopy> hf_copies(const ModelConfig& config);

/// Does a folder's tensor follow from the configuration, like rotary_emb.inv_freq?
bool is_derived_in_hf(std::string_view name);

/// The parameter or buffer of an archive's key ("value/<name>" or "master/<name>"), or nothing.
std::optional<std::string_view> value_name(std::string_view key);

/// Is `name` in a multi-token-prediction layer of the folder that the model does without?
bool is_unused_mtp(std::string_view name, const ModelConfig& folder, const ModelConfig& model);

/// Where the configuration has multi-token-prediction layers and the entries have none of their
/// tensors, sets num_nextn_predict_layers to 0 and returns what to say about it.
std::optional<std::string> drop_absent_mtp(ModelConfig& config,
                                           const std::vector<ArchiveEntry>& entries);

}  // namespace ciuic::core
