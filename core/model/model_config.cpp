// SPDX-License-Identifier: MIT
// Reading and writing config.json through the one table of fields.
#include "core/model/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include <ciuic/error.hpp>

#include "core/config/joined.h"
#include "core/config/nearest.h"

namespace ciuic::core {
namespace {

using Config = ModelConfig;
using Json = nlohmann::json;

constexpr auto kFields = std::to_array<Config::Field>({
    {"attention_bias", &Config::attention_bias,
     "Biases in the projections into and out of attention."},
    {"attention_dropout", &Config::attention_dropout, "Dropout on attention weights. Only 0."},
    {"bos_token_id", &Config::bos_token_id, "Token that begins a text."},
    {"dtype", &Config::dtype, "Dtype that exported weights are meant for."},
    {"eos_token_id", &Config::eos_token_id, "Token that ends a text."},
    {"first_k_dense_replace", &Config::first_k_dense_replace,
     "Layers at the start with a dense MLP instead of experts."},
    {"hidden_act", &Config::hidden_act, "Activation of the MLPs. Only silu."},
    {"hidden_size", &Config::hidden_size, "Width of the residual stream."},
    {"initializer_range", &Config::initializer_range, "Standard deviation of initial weights."},
    {"intermediate_size", &Config::intermediate_size, "Width of the dense MLPs."},
    {"kv_lora_rank", &Config::kv_lora_rank, "Width of the latent that keys and values come from."},
    {"max_position_embeddings", &Config::max_position_embeddings, "Longest sequence."},
    {"model_type", &Config::model_type, "deepseek_v2 or deepseek_v3."},
    {"moe_intermediate_size", &Config::moe_intermediate_size, "Width of one expert."},
    {"moe_layer_freq", &Config::moe_layer_freq, "Every how manyth layer has experts."},
    {"n_group", &Config::n_group, "Groups that the routed experts fall into."},
    {"n_routed_experts", &Config::n_routed_experts, "Experts that the router chooses from."},
    {"n_shared_experts", &Config::n_shared_experts, "Experts that see every token; 0 for none."},
    {"norm_topk_prob", &Config::norm_topk_prob, "Divide a token's expert weights by their sum."},
    {"num_attention_heads", &Config::num_attention_heads, "Attention heads."},
    {"num_experts_per_tok", &Config::num_experts_per_tok, "Routed experts per token."},
    {"num_hidden_layers", &Config::num_hidden_layers, "Layers."},
    {"num_key_value_heads", &Config::num_key_value_heads,
     "Equal to num_attention_heads in this architecture."},
    {"num_nextn_predict_layers", &Config::num_nextn_predict_layers,
     "Layers for multi-token prediction after the others; 0 for none."},
    {"pad_token_id", &Config::pad_token_id, "Token that fills rows; not used in training."},
    {"q_lora_rank", &Config::q_lora_rank,
     "Width of the latent that queries come from; null: none."},
    {"qk_nope_head_dim", &Config::qk_nope_head_dim,
     "Query and key width per head without position."},
    {"qk_rope_head_dim", &Config::qk_rope_head_dim,
     "Query and key width per head that is rotated by position."},
    {"rms_norm_eps", &Config::rms_norm_eps,
     "Epsilon of the layer norms; the latent norms always use 1e-6."},
    {"rope_interleave", &Config::rope_interleave,
     "Rotary pairs are adjacent elements; false: half a head apart."},
    {"rope_parameters", &Config::rope_parameters,
     "Rotary angles beyond theta: rope_type \"default\" or \"yarn\" with its factor, "
     "original_max_position_embeddings, beta_fast, beta_slow, mscale, mscale_all_dim."},
    {"rope_rule", &Config::rope_rule,
     "\"transformers\": rope_parameters always apply; \"deepseek\": only if "
     "max_position_embeddings exceeds the original length."},
    {"rope_theta", &Config::rope_theta, "Base of the rotary frequencies."},
    {"routed_scaling_factor", &Config::routed_scaling_factor,
     "Factor on the routed experts' weights."},
    {"scoring_func", &Config::scoring_func, "Turns router logits into scores: sigmoid or softmax."},
    {"tie_word_embeddings", &Config::tie_word_embeddings, "One matrix for embedding and head."},
    {"topk_group", &Config::topk_group, "Groups that a token's experts may come from."},
    {"topk_method", &Config::topk_method,
     "How experts are chosen: noaux_tc (with a correction bias), greedy or group_limited_greedy."},
    {"use_cache", &Config::use_cache, "For generation in other tools; no effect here."},
    {"v_head_dim", &Config::v_head_dim, "Value width per head."},
    {"vocab_size", &Config::vocab_size, "Tokens in the vocabulary."},
});

// Keys that tools write into config.json and that change nothing about the model. Sorted.
constexpr auto kBookkeeping = std::to_array<std::string_view>({
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_experts_implementation",
    "_name_or_path",
    "architectures",
    "auto_map",
    "aux_loss_alpha",
    "chunk_size_feed_forward",
    "ep_size",
    "head_dim",
    "id2label",
    "is_encoder_decoder",
    "label2id",
    "mlp_bias",
    "num_local_experts",
    "output_attentions",
    "output_hidden_states",
    "pretraining_tp",
    "problem_type",
    "qk_head_dim",
    "return_dict",
    "seq_aux",
    "torch_dtype",
    "transformers_version",
});

std::string mismatch(std::string_view name, const Json& value, std::string_view expected) {
  return std::string(name) + ": got " + value.dump() + ", expected " +
         (expected.starts_with("integer") ? "an " : "a ") + std::string(expected);
}

bool is_whole(const Json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && value.get<double>() == std::floor(value.get<double>()) &&
          std::abs(value.get<double>()) < 9e15);
}

int64_t whole(const Json& value) {
  return value.is_number_float() ? static_cast<int64_t>(value.get<double>()) : value.get<int64_t>();
}

// One overload for each type of member: false when the value does not fit.
bool assign(int64_t& member, const Json& value) {
  if (!is_whole(value)) {
    return false;
  }
  member = whole(value);
  return true;
}
bool assign(double& member, const Json& value) {
  if (!value.is_number()) {
    return false;
  }
  member = value.get<double>();
  return true;
}
bool assign(bool& member, const Json& value) {
  if (!value.is_boolean()) {
    return false;
  }
  member = value.get<bool>();
  return true;
}
bool assign(std::string& member, const Json& value) {
  if (!value.is_string()) {
    return false;
  }
  member = value.get<std::string>();
  return true;
}
bool assign(std::optional<int64_t>& member, const Json& value) {
  if (value.is_null()) {
    member.reset();
    return true;
  }
  int64_t number = 0;
  if (!assign(number, value)) {
    return false;
  }
  member = number;
  return true;
}

// What a table holds is read by read_rope, which says more.
bool assign(RopeParameters&, const Json&) { return false; }

Json as_json(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(nullptr); }
template <typename T>
Json as_json(const T& value) {
  return Json(value);
}

[[noreturn]] void refuse(std::string_view origin, const std::vector<std::string>& wrong) {
  std::string message(origin);
  for (const std::string& one : wrong) {
    message += (&one == wrong.data() ? ": " : "; ") + one;
  }
  throw Error(CIUIC_INVALID, message);
}

}  // namespace

std::string_view ModelConfig::Field::type_name() const {
  constexpr std::array<std::string_view, 6> kNames = {
      "integer", "number", "boolean", "string", "integer or null", "table or null"};
  return kNames[member.index()];
}

std::span<const ModelConfig::Field> ModelConfig::fields() { return kFields; }

const ModelConfig::Field* ModelConfig::find_field(std::string_view name) {
  const auto* found =
      std::find_if(kFields.begin(), kFields.end(), [&](const Field& f) { return f.name == name; });
  return found == kFields.end() ? nullptr : found;
}

std::optional<std::string> ModelConfig::set(std::string_view name, const Json& value) {
  if (name == "rope_parameters") {
    std::vector<std::string> unknown;
    std::vector<std::string> wrong = read_rope(value, name, rope_parameters, rope_theta, unknown);
    for (const std::string& key : unknown) {
      wrong.push_back(key + " is no key" + suggestion(key.substr(name.size() + 1), rope_keys()));
    }
    if (value.is_object() && value.contains("factor") && !rope_parameters.is_yarn()) {
      wrong.push_back(std::string(name) + ".factor has no effect without rope_type = \"yarn\"");
    }
    return wrong.empty() ? std::nullopt : std::optional(joined(wrong, "; "));
  }
  const Field* field = find_field(name);
  if (field == nullptr) {
    return std::string(name) + ": no such field of a DeepSeek model";
  }
  const bool fits =
      std::visit([&](auto member) { return assign(this->*member, value); }, field->member);
  return fits ? std::nullopt : std::optional(mismatch(name, value, field->type_name()));
}

Json ModelConfig::to_json() const {
  Json out = {{"architectures", {is_v2() ? "DeepseekV2ForCausalLM" : "DeepseekV3ForCausalLM"}}};
  for (const Field& field : kFields) {
    std::visit(
        [&]<typename T>(T Config::*member) {
          if constexpr (!std::is_same_v<T, RopeParameters>) {
            out[std::string(field.name)] = as_json(this->*member);
          }
        },
        field.member);
  }
  if (rope_parameters != RopeParameters()) {
    out["rope_parameters"] = core::to_json(rope_parameters, rope_theta);
    out["rope_scaling"] = out["rope_parameters"];  // what tools before transformers 5 read
    out["rope_scaling"]["type"] = rope_parameters.rope_type;
  }
  if (rope_rule == ModelConfig().rope_rule) {
    out.erase("rope_rule");  // not a field that others know
  }
  return out;
}

int64_t ModelConfig::num_moe_layers() const {
  int64_t count = 0;
  for (int64_t layer = 0; layer < num_layers(); ++layer) {
    count += is_moe_layer(layer) ? 1 : 0;
  }
  return count;
}

int64_t ModelConfig::mixture_of_layer(int64_t layer) const {
  int64_t count = 0;
  for (int64_t before = 0; before < layer; ++before) {
    count += is_moe_layer(before) ? 1 : 0;
  }
  return count;
}

RopeParameters ModelConfig::applied_rope() const {
  const int64_t original =
      rope_parameters.original_max_position_embeddings.value_or(max_position_embeddings);
  const bool applies = rope_rule != "deepseek" || max_position_embeddings > original;
  return applies ? rope_parameters : RopeParameters();
}

double ModelConfig::softmax_scale() const {
  return softmax_factor(applied_rope()) / std::sqrt(static_cast<double>(qk_head_dim()));
}

// What DeepseekV2Config has otherwise.
ModelConfig defaults_of(std::string_view model_type) {
  ModelConfig c;
  if (model_type != "deepseek_v2") {
    return c;
  }
  c.model_type = model_type;
  c.vocab_size = 102400;
  c.hidden_size = 4096;
  c.num_hidden_layers = c.num_attention_heads = c.num_key_value_heads = 32;
  c.intermediate_size = 11008;
  c.max_position_embeddings = 2048;
  c.first_k_dense_replace = 0;
  c.moe_intermediate_size = 1407;
  c.n_routed_experts = 64;
  c.n_shared_experts = 2;
  c.n_group = c.topk_group = 1;
  c.topk_method = "greedy";
  c.scoring_func = "softmax";
  c.norm_topk_prob = false;
  c.routed_scaling_factor = 1.0;
  c.bos_token_id = 1;
  c.eos_token_id = 2;
  return c;
}

ModelConfig from_json(const Json& config, std::string_view origin) {
  if (!config.is_object()) {
    refuse(origin, {"expected a JSON object with the fields of a model"});
  }
  const auto type = config.find("model_type");
  ModelConfig result = defaults_of(
      type != config.end() && type->is_string() ? type->get<std::string>() : "deepseek_v3");
  std::vector<std::string> wrong;
  bool has_key_value_heads = !result.is_v2() || config.contains("num_key_value_heads");
  for (const auto& [key, value] : config.items()) {
    if (key == "rope_scaling" && config.contains("rope_parameters")) {
      continue;  // the same in the older spelling
    }
    if (key == "quantization_config") {
      result.quantization = value;
    } else if (key == "mlp_bias" && value != Json(false)) {
      wrong.push_back(mismatch(key, value, "false: MLPs have no biases here"));
    } else if (value.is_null() && (key == "n_group" || key == "topk_group")) {
      result.set(key, 1);  // experts in no groups
    } else if (value.is_null() && key == "num_key_value_heads") {
      has_key_value_heads = false;
    } else if (key == "rope_scaling" || key == "rope_parameters") {
      // Others write keys that mean nothing here: they are noted, not refused.
      for (std::string& one : read_rope(value, key, result.rope_parameters, result.rope_theta,
                                        result.unknown_fields)) {
        wrong.push_back(std::move(one));
      }
    } else if (ModelConfig::find_field(key) != nullptr) {
      if (auto problem = result.set(key, value)) {
        wrong.push_back(*problem);
      }
    } else if (!std::binary_search(kBookkeeping.begin(), kBookkeeping.end(), key)) {
      result.unknown_fields.push_back(key);
    }
  }
  if (config.contains("torch_dtype") && !config.contains("dtype") &&
      config["torch_dtype"].is_string()) {
    result.dtype = config["torch_dtype"].get<std::string>();
  }
  if (!has_key_value_heads) {
    result.num_key_value_heads = result.num_attention_heads;
  }
  if (!wrong.empty()) {
    refuse(origin, wrong);
  }
  return result;
}

}  // namespace ciuic::core
