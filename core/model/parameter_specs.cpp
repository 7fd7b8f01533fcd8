// SPDX-License-Identifier: MIT
// Names and shapes, in the order that the layers read their bindings.
#include "core/model/parameter_specs.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace ciuic::core {
namespace {

// Appends parameters under a growing name.
class SpecList {
 public:
  void at(int64_t unit, std::string prefix) {
    unit_ = unit;
    prefix_ = std::move(prefix);
  }
  void matrix(const std::string& name, int64_t out, int64_t in, bool is_expert = false) {
    specs_.push_back({prefix_ + name + ".weight", {out, in}, unit_, is_expert, Init::Normal});
  }
  void bias(const std::string& name, int64_t size) {
    specs_.push_back({prefix_ + name + ".bias", {size}, unit_, false, Init::Zeros});
  }
  /// The parameter at `index` of the list under a second name.
  void tied(const std::string& name, int64_t index) {
    ParameterSpec spec = specs_[static_cast<size_t>(index)];
    spec.name = prefix_ + name + ".weight";
    spec.unit = unit_;
    spec.tied_to = index;
    specs_.push_back(std::move(spec));
  }
  void norm(const std::string& name, int64_t size) {
    specs_.push_back({prefix_ + name + ".weight", {size}, unit_, false, Init::Ones});
  }
  void swiglu(const std::string& name, int64_t hidden, int64_t width, bool is_expert = false) {
    matrix(name + "gate_proj", width, hidden, is_expert);
    matrix(name + "up_proj", width, hidden, is_expert);
    matrix(name + "down_proj", hidden, width, is_expert);
  }
  std::vector<ParameterSpec> take() { return std::move(specs_); }

 private:
  std::vector<ParameterSpec> specs_;
  std::string prefix_;
  int64_t unit_ = 0;
};

// LatentAttention reads exactly this order (AttentionWeights).
void add_attention(SpecList& list, const ModelConfig& c) {
  const int64_t query_width = c.num_attention_heads * c.qk_head_dim();
  const auto projection = [&](const std::string& name, int64_t out, int64_t in) {
    list.matrix("self_attn." + name, out, in);
    if (c.attention_bias) {
      list.bias("self_attn." + name, out);
    }
  };
  if (c.q_lora_rank) {
    projection("q_a_proj", *c.q_lora_rank, c.hidden_size);
    list.norm("self_attn.q_a_layernorm", *c.q_lora_rank);
    list.matrix("self_attn.q_b_proj", query_width, *c.q_lora_rank);
  } else {
    list.matrix("self_attn.q_proj", query_width, c.hidden_size);
  }
  projection("kv_a_proj_with_mqa", c.kv_lora_rank + c.qk_rope_head_dim, c.hidden_size);
  list.norm("self_attn.kv_a_layernorm", c.kv_lora_rank);
  list.matrix("self_attn.kv_b_proj", c.num_attention_heads * (c.qk_nope_head_dim + c.v_head_dim),
              c.kv_lora_rank);
  projection("o_proj", c.hidden_size, c.num_attention_heads * c.v_head_dim);
}

// MixtureOfExperts::forward reads exactly this order.
void add_mixture(SpecList& list, const ModelConfig& c, const ExpertShare& share) {
  list.matrix("mlp.gate", c.n_routed_experts, c.hidden_size);
  const int64_t first = share.first(c.n_routed_experts);
  const int64_t count = share.count(c.n_routed_experts);
  for (int64_t expert = first; expert < first + count; ++expert) {
    list.swiglu("mlp.experts." + std::to_string(expert) + ".", c.hidden_size,
                c.moe_intermediate_size, true);
  }
  if (c.n_shared_experts > 0) {
    list.swiglu("mlp.shared_experts.", c.hidden_size, c.shared_intermediate_size());
  }
}

// DecoderLayer reads exactly this order.
void add_layer(SpecList& list, const ModelConfig& c, int64_t layer, const ExpertShare& share) {
  list.norm("input_layernorm", c.hidden_size);
  add_attention(list, c);
  list.norm("post_attention_layernorm", c.hidden_size);
  if (c.is_moe_layer(layer)) {
    add_mixture(list, c, share);
  } else {
    list.swiglu("mlp.", c.hidden_size, c.intermediate_size);
  }
}

std::string layer_prefix(int64_t layer) { return "model.layers." + std::to_string(layer) + "."; }

}  // namespace

int64_t ParameterSpec::num_elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<ParameterSpec> parameter_specs(const ModelConfig& c, const ExpertShare& share) {
  SpecList list;
  list.at(0, "model.");
  list.matrix("embed_tokens", c.vocab_size, c.hidden_size);
  for (int64_t layer = 0; layer < c.num_layers(); ++layer) {
    list.at(layer + 1, layer_prefix(layer));
    const bool predicts = layer >= c.num_hidden_layers;
    if (predicts) {  // PredictionLayer reads exactly this order
      list.norm("enorm", c.hidden_size);
      list.norm("hnorm", c.hidden_size);
      list.matrix("eh_proj", c.hidden_size, 2 * c.hidden_size);
    }
    add_layer(list, c, layer, share);
    if (predicts) {
      list.norm("shared_head.norm", c.hidden_size);
    }
  }
  list.at(c.num_layers() + 1, "");
  list.norm("model.norm", c.hidden_size);
  if (c.tie_word_embeddings) {
    list.tied("lm_head", 0);
  } else {
    list.matrix("lm_head", c.vocab_size, c.hidden_size);
  }
  return list.take();
}

std::vector<BufferSpec> buffer_specs(const ModelConfig& c) {
  std::vector<BufferSpec> buffers;
  for (int64_t layer = 0; c.has_correction_bias() && layer < c.num_layers(); ++layer) {
    if (c.is_moe_layer(layer)) {
      buffers.push_back({layer_prefix(layer) + "mlp.gate.e_score_correction_bias",
                         {c.n_routed_experts},
                         layer + 1});
    }
  }
  return buffers;
}

int64_t count_parameters(const ModelConfig& config) {
  int64_t count = 0;
  for (const ParameterSpec& spec : parameter_specs(config)) {
    count += spec.is_tied() ? 0 : spec.num_elements();
  }
  return count;
}

int64_t count_active_parameters(const ModelConfig& c) {
  const int64_t per_expert = 3 * c.hidden_size * c.moe_intermediate_size;
  const int64_t idle =
      c.num_moe_layers() * (c.n_routed_experts - c.num_experts_per_tok) * per_expert;
  // The head's matrix serves once more for each depth of prediction; tied, it is the embedding.
  const int64_t heads = 1 + c.num_nextn_predict_layers;
  const int64_t embeddings = c.tie_word_embeddings ? 1 : 2;
  return count_parameters(c) - idle + (heads - embeddings) * c.vocab_size * c.hidden_size;
}

double flops_per_token(const ModelConfig& c, int64_t sequence_tokens) {
  const int64_t attention = 3 * c.num_layers() * sequence_tokens * c.num_attention_heads *
                            (c.qk_head_dim() + c.v_head_dim);
  return static_cast<double>(6 * count_active_parameters(c) + attention);
}

}  // namespace ciuic::core
