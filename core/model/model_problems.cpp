// SPDX-License-Identifier: MIT
// What is inconsistent in a model configuration, or asks for something that this version does not
// do.
//
// Each line: field, what was got, what is expected, and what to do. All of them at once, so that
// one look suffices.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/model/model_config.h"

namespace ciuic::core {
namespace {

class Problems {
 public:
  /// `got` is the value as it stands in the file.
  void require(bool holds, std::string_view field, const std::string& got,
               std::string_view expected, std::string_view remedy) {
    if (!holds) {
      list_.push_back(std::string(field) + ": got " + got + ", expected " + std::string(expected) +
                      "; " + std::string(remedy));
    }
  }
  [[nodiscard]] bool is_empty() const { return list_.empty(); }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

std::string text(int64_t value) { return std::to_string(value); }
std::string text(double value) {
  return std::isfinite(value) ? nlohmann::json(value).dump() : std::to_string(value);
}
std::string text(const std::string& value) { return '"' + value + '"'; }

void check_supported(const ModelConfig& c, Problems& p) {
  constexpr std::string_view kOnly = "not supported in this version, use the expected value";
  p.require(c.model_type == "deepseek_v2" || c.model_type == "deepseek_v3", "model_type",
            text(c.model_type), "\"deepseek_v2\" or \"deepseek_v3\"",
            "other architectures are not supported");
  p.require(c.attention_dropout == 0, "attention_dropout", text(c.attention_dropout), "0", kOnly);
  p.require(c.hidden_act == "silu", "hidden_act", text(c.hidden_act), "\"silu\"", kOnly);
  p.require(c.rope_interleave || !c.is_v2(), "rope_interleave", "false", "true",
            "the rotary pairs of a deepseek_v2 model are adjacent elements");
  p.require(!c.is_v2() || c.num_nextn_predict_layers == 0, "num_nextn_predict_layers",
            text(c.num_nextn_predict_layers), "0",
            "deepseek_v2 has no multi-token prediction, use deepseek_v3");
}

/// V2 and V3 differ in their routers; mixtures of the two are nobody's model.
void check_router(const ModelConfig& c, Problems& p) {
  if (c.is_v2()) {
    p.require(c.scoring_func == "softmax", "scoring_func", text(c.scoring_func), "\"softmax\"",
              "the router of deepseek_v2");
    p.require(c.topk_method == "greedy" || c.topk_method == "group_limited_greedy", "topk_method",
              text(c.topk_method), "\"greedy\" or \"group_limited_greedy\"",
              "the routers of deepseek_v2");
    p.require(!c.norm_topk_prob || c.routed_scaling_factor == 1, "norm_topk_prob", "true", "false",
              "whether weights that are divided by their sum are also scaled differs between "
              "implementations of deepseek_v2; with routed_scaling_factor = 1 they agree");
  } else {
    p.require(c.scoring_func == "sigmoid", "scoring_func", text(c.scoring_func), "\"sigmoid\"",
              "the router of deepseek_v3");
    p.require(c.topk_method == "noaux_tc", "topk_method", text(c.topk_method), "\"noaux_tc\"",
              "the router of deepseek_v3");
  }
}

void check_rope(const ModelConfig& c, Problems& p) {
  const RopeParameters& rope = c.rope_parameters;
  p.require(rope.rope_type == "default" || rope.is_yarn(), "rope_parameters.rope_type",
            text(rope.rope_type), "\"default\" or \"yarn\"",
            "other scalings of rotary angles are not supported");
  p.require(c.rope_rule == "transformers" || c.rope_rule == "deepseek", "rope_rule",
            text(c.rope_rule), "\"transformers\" or \"deepseek\"", "transformers is usual");
  p.require(c.rope_theta > 0, "rope_theta", text(c.rope_theta), "a positive number",
            "10000 is usual");
  if (!rope.is_yarn()) {
    return;
  }
  p.require(c.rope_theta > 1, "rope_theta", text(c.rope_theta), "more than 1 with yarn",
            "10000 is usual");
  p.require(rope.factor >= 1, "rope_parameters.factor", text(rope.factor), "1 or more",
            "DeepSeek's is 40");
  const int64_t original = rope.original_max_position_embeddings.value_or(1);
  p.require(original > 0, "rope_parameters.original_max_position_embeddings", text(original),
            "a positive integer", "DeepSeek's is 4096");
  p.require(rope.beta_slow > 0 && rope.beta_fast > rope.beta_slow, "rope_parameters.beta_fast",
            text(rope.beta_fast),
            "more than beta_slow (" + text(rope.beta_slow) + "), which is positive",
            "32 and 1 are usual");
}

/// The size that is furthest beyond DeepSeek-V3's.
std::pair<const char*, int64_t> largest_size(const ModelConfig& c) {
  struct Size {
    const char* name;
    int64_t value;
    int64_t of_v3;
    [[nodiscard]] double ratio() const {
      return static_cast<double>(value) / static_cast<double>(of_v3);
    }
  };
  const Size sizes[] = {{"hidden_size", c.hidden_size, 7168},
                        {"vocab_size", c.vocab_size, 129280},
                        {"num_hidden_layers", c.num_hidden_layers, 61},
                        {"intermediate_size", c.intermediate_size, 18432},
                        {"moe_intermediate_size", c.moe_intermediate_size, 2048},
                        {"n_routed_experts", c.n_routed_experts, 256}};
  const Size& largest =
      *std::max_element(std::begin(sizes), std::end(sizes),
                        [](const Size& x, const Size& y) { return x.ratio() < y.ratio(); });
  return {largest.name, largest.value};
}

/// Before anything is counted or allocated: a model that no machine holds is a typing error.
void check_total(const ModelConfig& c, Problems& p) {
  constexpr double kMostTensors = 1e7;
  constexpr double kMostParameters = 1e14;
  const auto layers =
      static_cast<double>(c.num_hidden_layers) + static_cast<double>(c.num_nextn_predict_layers);
  const double experts = layers * static_cast<double>(c.n_routed_experts);
  const bool are_predicting = c.num_nextn_predict_layers > c.num_hidden_layers;
  p.require(experts <= kMostTensors && layers <= kMostTensors / 100,
            are_predicting ? "num_nextn_predict_layers" : "num_hidden_layers",
            text(are_predicting ? c.num_nextn_predict_layers : c.num_hidden_layers),
            "at most 100000, and at most 10000000 experts in all layers",
            "set it to the model's size");
  const double hidden = static_cast<double>(c.hidden_size);
  const double parameters = 2.0 * hidden * static_cast<double>(c.vocab_size) +
                            3.0 * hidden *
                                (layers * static_cast<double>(c.intermediate_size) +
                                 experts * static_cast<double>(c.moe_intermediate_size));
  const auto [name, value] = largest_size(c);
  p.require(parameters <= kMostParameters, name, text(value),
            "sizes with at most 10^14 parameters together", "set it to the model's size");
}

void check_sizes(const ModelConfig& c, Problems& p) {
  const std::pair<const char*, int64_t> positive[] = {
      {"vocab_size", c.vocab_size},
      {"hidden_size", c.hidden_size},
      {"num_hidden_layers", c.num_hidden_layers},
      {"intermediate_size", c.intermediate_size},
      {"max_position_embeddings", c.max_position_embeddings},
      {"num_attention_heads", c.num_attention_heads},
      {"q_lora_rank", c.q_lora_rank.value_or(1)},
      {"kv_lora_rank", c.kv_lora_rank},
      {"qk_nope_head_dim", c.qk_nope_head_dim},
      {"qk_rope_head_dim", c.qk_rope_head_dim},
      {"v_head_dim", c.v_head_dim},
      {"moe_layer_freq", c.moe_layer_freq},
      {"moe_intermediate_size", c.moe_intermediate_size},
      {"n_routed_experts", c.n_routed_experts},
      {"num_experts_per_tok", c.num_experts_per_tok},
      {"n_group", c.n_group},
      {"topk_group", c.topk_group},
  };
  constexpr int64_t kLargest = int64_t{1} << 24;  // beyond any model, and far from an overflow
  for (const auto& [name, value] : positive) {
    p.require(value > 0 && value <= kLargest, name, text(value),
              "a positive integer up to " + text(kLargest), "set it to the model's size");
  }
  p.require(c.n_shared_experts >= 0, "n_shared_experts", text(c.n_shared_experts), "0 or more",
            "use 0 for none");
  p.require(c.first_k_dense_replace >= 0, "first_k_dense_replace", text(c.first_k_dense_replace),
            "0 or more", "use 0 when every layer has experts");
  p.require(c.num_key_value_heads == c.num_attention_heads, "num_key_value_heads",
            text(c.num_key_value_heads),
            "num_attention_heads (" + text(c.num_attention_heads) + ")",
            "latent attention has one key and value per head, make them equal");
  p.require(c.qk_rope_head_dim % 2 == 0, "qk_rope_head_dim", text(c.qk_rope_head_dim),
            "an even integer", "rotary positions turn pairs of elements");
  p.require(c.num_nextn_predict_layers >= 0 && c.num_nextn_predict_layers <= 1024,
            "num_nextn_predict_layers", text(c.num_nextn_predict_layers), "0 to 1024",
            "0 turns multi-token prediction off, DeepSeek-V3 has 1");
  p.require(c.rms_norm_eps > 0, "rms_norm_eps", text(c.rms_norm_eps), "a positive number",
            "1e-6 is usual");
  p.require(c.initializer_range >= 0, "initializer_range", text(c.initializer_range), "0 or more",
            "DeepSeek-V3 trained with 0.006");
}

void check_routing(const ModelConfig& c, Problems& p) {
  if (c.n_group <= 0 || c.n_routed_experts <= 0) {
    return;  // said above; what follows divides by them
  }
  const int64_t experts_per_group = c.n_routed_experts / c.n_group;
  p.require(c.n_routed_experts % c.n_group == 0, "n_routed_experts", text(c.n_routed_experts),
            "a multiple of n_group (" + text(c.n_group) + ")",
            "groups have equal numbers of experts");
  p.require(c.topk_group <= c.n_group, "topk_group", text(c.topk_group),
            "at most n_group (" + text(c.n_group) + ")",
            "a token cannot keep more groups than there are");
  p.require(c.n_group == 1 || experts_per_group >= 2 || c.is_v2(), "n_group", text(c.n_group),
            "at least 2 experts in a group (n_routed_experts / n_group is " +
                text(experts_per_group) + ")",
            "a group is judged by its two best experts, use fewer groups");
  const bool is_limited = c.topk_method != "greedy";
  const int64_t reachable =
      is_limited ? experts_per_group * std::min(c.topk_group, c.n_group) : c.n_routed_experts;
  p.require(c.num_experts_per_tok <= reachable, "num_experts_per_tok", text(c.num_experts_per_tok),
            "at most " + text(reachable) + ", the experts in topk_group groups",
            "choose fewer experts or keep more groups");
}

}  // namespace

std::vector<std::string> problems(const ModelConfig& config) {
  Problems list;
  check_supported(config, list);
  check_router(config, list);
  check_rope(config, list);
  check_sizes(config, list);
  if (list.is_empty()) {
    check_total(config, list);
  }
  check_routing(config, list);
  return list.take();
}

}  // namespace ciuic::core
