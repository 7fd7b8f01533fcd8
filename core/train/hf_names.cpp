// SPDX-License-Identifier: MIT
#include "core/train/hf_names.h"

#include <algorithm>

namespace ciuic::core {
namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

/// Multi-token-prediction layers follow the model's own.
std::string mtp_prefix(const ModelConfig& config, int64_t number) {
  return "model.layers." + std::to_string(config.num_hidden_layers + number) + ".";
}

}  // namespace

std::vector<HfCopy> hf_copies(const ModelConfig& config) {
  const std::vector<int64_t> shape{config.vocab_size, config.hidden_size};
  const char* head = config.tie_word_embeddings ? kEmbedding : kHead;
  std::vector<HfCopy> copies;
  if (config.tie_word_embeddings) {
    copies.push_back({kHead, kEmbedding, shape, false});
  }
  for (int64_t k = 0; k < config.num_nextn_predict_layers; ++k) {
    copies.push_back({mtp_prefix(config, k) + "embed_tokens.weight", kEmbedding, shape});
    copies.push_back({mtp_prefix(config, k) + "shared_head.head.weight", head, shape});
  }
  return copies;
}

bool is_derived_in_hf(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

std::optional<std::string_view> value_name(std::string_view key) {
  for (const std::string_view prefix : {"value/", "master/"}) {
    if (key.starts_with(prefix)) {
      return key.substr(prefix.size());
    }
  }
  return std::nullopt;
}

bool is_unused_mtp(std::string_view name, const ModelConfig& folder, const ModelConfig& model) {
  if (folder.num_hidden_layers != model.num_hidden_layers) {
    return false;
  }
  for (int64_t k = model.num_nextn_predict_layers; k < folder.num_nextn_predict_layers; ++k) {
    if (name.starts_with(mtp_prefix(folder, k))) {
      return true;
    }
  }
  return false;
}

std::optional<std::string> drop_absent_mtp(ModelConfig& config,
                                           const std::vector<ArchiveEntry>& entries) {
  ModelConfig without = config;
  without.num_nextn_predict_layers = 0;
  const bool has_any = std::any_of(entries.begin(), entries.end(), [&](const ArchiveEntry& entry) {
    const auto name = value_name(entry.key);
    return name && is_unused_mtp(*name, config, without);
  });
  if (config.num_nextn_predict_layers <= 0 || has_any) {
    return std::nullopt;
  }
  std::string note = "config.json says num_nextn_predict_layers = " +
                     std::to_string(config.num_nextn_predict_layers) +
                     ", but the files hold no such layer: it is taken as 0";
  config = without;
  return note;
}

}  // namespace ciuic::core
