// SPDX-License-Identifier: MIT
#pragma once

// The shape of a DeepSeek-V2 or V3 model, field for field as Hugging Face's config.json names it.
//
// One table (ModelConfig::fields) drives reading, writing and overriding, so the TOML `[model]`
// table takes every field by name. Reading is tolerant (both spellings of the rotary fields,
// bookkeeping ignored); `problems` is strict and names every request that this version cannot
// honour. No LibTorch: the launcher links this too.
//
// Sources: transformers, DeepseekV2Config and DeepseekV3Config; DeepSeek-V2, arXiv:2405.04434, and
// DeepSeek-V3, arXiv:2412.19437, section 4.2.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/model/rope_parameters.h"

namespace ciuic::core {

/// Defaults are those of transformers' DeepseekV3Config, which apply to fields that a file leaves
/// out (`defaults_of` has those of V2).
struct ModelConfig {
  std::string model_type = "deepseek_v3";

  // Sizes.
  int64_t vocab_size = 129280;
  int64_t hidden_size = 7168;
  int64_t num_hidden_layers = 61;
  int64_t intermediate_size = 18432;
  int64_t max_position_embeddings = 4096;

  // Multi-head latent attention.
  int64_t num_attention_heads = 128;
  int64_t num_key_value_heads = 128;
  std::optional<int64_t> q_lora_rank = 1536;
  int64_t kv_lora_rank = 512;
  int64_t qk_nope_head_dim = 128;
  int64_t qk_rope_head_dim = 64;
  int64_t v_head_dim = 128;
  double rope_theta = 10000.0;
  bool rope_interleave = true;
  bool attention_bias = false;
  double attention_dropout = 0.0;

  // Mixture of experts.
  int64_t first_k_dense_replace = 3;
  int64_t moe_layer_freq = 1;
  int64_t moe_intermediate_size = 2048;
  int64_t n_routed_experts = 256;
  int64_t n_shared_experts = 1;
  int64_t num_experts_per_tok = 8;
  int64_t n_group = 8;
  int64_t topk_group = 4;
  std::string topk_method = "noaux_tc";
  std::string scoring_func = "sigmoid";
  bool norm_topk_prob = true;
  double routed_scaling_factor = 2.5;

  // The rest.
  std::string hidden_act = "silu";
  double rms_norm_eps = 1e-6;
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  int64_t num_nextn_predict_layers = 0;
  std::optional<int64_t> bos_token_id = 0;
  std::optional<int64_t> eos_token_id = 1;
  std::optional<int64_t> pad_token_id;
  RopeParameters rope_parameters;
  /// Ours: "transformers" stretches positions whenever `rope_parameters` says so, "deepseek" (as
  /// DeepSeek's own inference code) only in models for sequences longer than the original ones.
  std::string rope_rule = "transformers";
  std::string dtype = "float32";
  bool use_cache = true;

  /// config.json's `quantization_config`: how the weights are stored, which is the checkpoint
  /// plugin's business. Null: as plain numbers.
  nlohmann::json quantization;
  /// Keys of config.json that are neither fields nor known bookkeeping, sorted.
  std::vector<std::string> unknown_fields;

  /// One Hugging Face field: where it lives and what it means.
  struct Field {
    using Member = std::variant<int64_t ModelConfig::*, double ModelConfig::*, bool ModelConfig::*,
                                std::string ModelConfig::*, std::optional<int64_t> ModelConfig::*,
                                RopeParameters ModelConfig::*>;
    std::string_view name;
    Member member;
    std::string_view doc;
    /// "integer", "number", "boolean", "string", "integer or null" or "table or null".
    [[nodiscard]] std::string_view type_name() const;
  };

  /// Every field, in alphabetical order (the order of config.json).
  static std::span<const Field> fields();
  /// Nullptr when there is no such field.
  static const Field* find_field(std::string_view name);

  /// Sets one field from a JSON value. Returns the problem ("model.hidden_size: got "x", expected
  /// an integer") or nothing. Integers are taken for numbers, whole numbers for integers.
  std::optional<std::string> set(std::string_view name, const nlohmann::json& value);

  /// What Hugging Face's from_pretrained reads: all fields, and `architectures`.
  [[nodiscard]] nlohmann::json to_json() const;

  // Derived sizes, under the names of the formulas.
  [[nodiscard]] int64_t qk_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
  /// Of all layers, those for multi-token prediction (from num_hidden_layers on) included.
  [[nodiscard]] bool is_moe_layer(int64_t layer) const {
    return layer >= num_hidden_layers ||
           (layer >= first_k_dense_replace && layer % std::max<int64_t>(moe_layer_freq, 1) == 0);
  }
  [[nodiscard]] int64_t num_layers() const { return num_hidden_layers + num_nextn_predict_layers; }
  [[nodiscard]] int64_t num_moe_layers() const;
  /// The mixture's number among mixtures, which is its row in expert_loads().
  [[nodiscard]] int64_t mixture_of_layer(int64_t layer) const;
  [[nodiscard]] bool is_v2() const { return model_type == "deepseek_v2"; }
  /// A correction bias steers the choice of experts: what aux-loss-free balancing moves.
  [[nodiscard]] bool has_correction_bias() const { return topk_method == "noaux_tc"; }
  /// `rope_parameters` as they apply, by `rope_rule`.
  [[nodiscard]] RopeParameters applied_rope() const;
  /// Factor on scores before the softmax. Source: DeepSeek-V2, section 3.1.4; training code.
  [[nodiscard]] double softmax_scale() const;
  /// Width of the shared experts, which run as one dense SwiGLU.
  [[nodiscard]] int64_t shared_intermediate_size() const {
    return n_shared_experts * moe_intermediate_size;
  }
};

/// The defaults of a model type ("deepseek_v2", "deepseek_v3"), which differ.
ModelConfig defaults_of(std::string_view model_type);

/// Reads a parsed config.json. `origin` names the file in messages.
/// Throws: InvalidConfig, with all wrong types at once.
ModelConfig from_json(const nlohmann::json& config, std::string_view origin);

/// Everything that is inconsistent or not supported yet, each with what was got, what is expected
/// and a remedy. Empty: the model can be built.
std::vector<std::string> problems(const ModelConfig& config);

/// A configuration that is built into the binary (configs/presets/<name>.json). Throws:
/// InvalidConfig, listing all.
ModelConfig preset(std::string_view name);
std::vector<std::string> preset_names();

}  // namespace ciuic::core
