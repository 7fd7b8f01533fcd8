// SPDX-License-Identifier: MIT
#include "tests/model/oracle.h"

#include <cmath>
#include <limits>

#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/model/rotary.h"

namespace ciuic::core::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// x: [B, T, H, R]
at::Tensor rotate(const at::Tensor& x, double theta) {
  Rotary rotary(x.size(3), theta, x.scalar_type(), at::kCPU);
  rotary.reserve(x.size(1));
  const at::Tensor turns =
      at::complex(rotary.cosine().narrow(0, 0, x.size(1)), rotary.sine().narrow(0, 0, x.size(1)))
          .unsqueeze(1);
  const at::Tensor z = at::view_as_complex(x.unflatten(3, {x.size(3) / 2, 2}).contiguous());
  return at::view_as_real(z.mul(turns)).flatten(3, 4);
}

}  // namespace

Oracle::Oracle(ModelConfig config, Named parameters, Named biases)
    : config_(std::move(config)), parameters_(std::move(parameters)), biases_(std::move(biases)) {}

at::Tensor Oracle::linear(const at::Tensor& x, const std::string& name) const {
  return at::matmul(x, parameters_.at(name + ".weight").t());
}

at::Tensor Oracle::rms_norm(const at::Tensor& x, const std::string& name, double epsilon) const {
  return x.mul(x.square().mean({-1}, true).add(epsilon).rsqrt())
      .mul(parameters_.at(name + ".weight"));
}

at::Tensor Oracle::attention(const at::Tensor& x_BTD, const std::string& prefix) const {
  const ModelConfig& c = config_;
  const int64_t heads = c.num_attention_heads;
  const int64_t tokens = x_BTD.size(1);
  const at::Tensor q_latent =
      rms_norm(linear(x_BTD, prefix + "q_a_proj"), prefix + "q_a_layernorm", 1e-6);
  const at::Tensor q = linear(q_latent, prefix + "q_b_proj").unflatten(2, {heads, c.qk_head_dim()});
  const at::Tensor latent_rope = linear(x_BTD, prefix + "kv_a_proj_with_mqa");
  const at::Tensor latent =
      rms_norm(latent_rope.narrow(2, 0, c.kv_lora_rank), prefix + "kv_a_layernorm", 1e-6);
  const at::Tensor kv =
      linear(latent, prefix + "kv_b_proj").unflatten(2, {heads, c.qk_nope_head_dim + c.v_head_dim});
  const at::Tensor k_rope =
      rotate(latent_rope.narrow(2, c.kv_lora_rank, c.qk_rope_head_dim).unsqueeze(2), c.rope_theta);
  const at::Tensor q_rope =
      rotate(q.narrow(3, c.qk_nope_head_dim, c.qk_rope_head_dim), c.rope_theta);
  const at::Tensor query = at::cat({q.narrow(3, 0, c.qk_nope_head_dim), q_rope}, 3).transpose(1, 2);
  const at::Tensor key =
      at::cat({kv.narrow(3, 0, c.qk_nope_head_dim), k_rope.expand({-1, -1, heads, -1})}, 3)
          .transpose(1, 2);
  const at::Tensor value = kv.narrow(3, c.qk_nope_head_dim, c.v_head_dim).transpose(1, 2);
  const at::Tensor future =
      at::triu(at::ones({tokens, tokens}, query.options().dtype(at::kBool)), 1);
  const at::Tensor scores = at::matmul(query, key.transpose(2, 3))
                                .mul(1.0 / std::sqrt(static_cast<double>(c.qk_head_dim())))
                                .masked_fill(future, -kInfinity);
  return linear(at::matmul(scores.softmax(-1), value).transpose(1, 2).flatten(2, 3),
                prefix + "o_proj");
}

at::Tensor Oracle::swiglu(const at::Tensor& x, const std::string& prefix) const {
  return linear(at::silu(linear(x, prefix + "gate_proj")).mul(linear(x, prefix + "up_proj")),
                prefix + "down_proj");
}

at::Tensor Oracle::chosen_experts(const at::Tensor& scores_NE, const std::string& prefix) const {
  const ModelConfig& c = config_;
  at::Tensor choice = scores_NE;
  if (const auto bias = biases_.find(prefix + "gate.e_score_correction_bias");
      bias != biases_.end()) {
    choice = choice.add(bias->second);
  }
  const at::Tensor grouped = choice.unflatten(1, {c.n_group, c.n_routed_experts / c.n_group});
  if (c.n_group > 1) {
    const at::Tensor group_scores = std::get<0>(grouped.topk(2, -1)).sum({-1});
    const at::Tensor kept = std::get<1>(group_scores.topk(c.topk_group, -1));
    const at::Tensor mask = at::zeros_like(group_scores).scatter(1, kept, 1);
    choice = grouped.masked_fill(mask.eq(0).unsqueeze(-1), -kInfinity).flatten(1, 2);
  }
  return std::get<1>(choice.topk(c.num_experts_per_tok, -1));
}

at::Tensor Oracle::mixture(const at::Tensor& x_ND, const std::string& prefix) const {
  const at::Tensor scores = linear(x_ND, prefix + "gate").sigmoid();
  const at::Tensor experts = chosen_experts(scores.detach(), prefix);
  at::Tensor weights = scores.gather(1, experts);
  if (config_.norm_topk_prob) {
    weights = weights.div(weights.sum({-1}, true).add(1e-20));
  }
  const at::Tensor dense =
      at::zeros_like(scores).scatter(1, experts, weights.mul(config_.routed_scaling_factor));
  at::Tensor out = at::zeros_like(x_ND);
  for (int64_t e = 0; e < config_.n_routed_experts; ++e) {
    const std::string expert = prefix + "experts." + std::to_string(e) + ".";
    out = out.add(swiglu(x_ND, expert).mul(dense.narrow(1, e, 1)));
  }
  return config_.n_shared_experts > 0 ? out.add(swiglu(x_ND, prefix + "shared_experts.")) : out;
}

at::Tensor Oracle::layer(const at::Tensor& x_BTD, int64_t index) const {
  const std::string prefix = "model.layers." + std::to_string(index) + ".";
  const double epsilon = config_.rms_norm_eps;
  const at::Tensor middle = x_BTD.add(
      attention(rms_norm(x_BTD, prefix + "input_layernorm", epsilon), prefix + "self_attn."));
  const at::Tensor normed = rms_norm(middle, prefix + "post_attention_layernorm", epsilon);
  if (!config_.is_moe_layer(index)) {
    return middle.add(swiglu(normed, prefix + "mlp."));
  }
  return middle.add(mixture(normed.flatten(0, 1), prefix + "mlp.").view_as(normed));
}

at::Tensor Oracle::logits(const at::Tensor& tokens_BT) const {
  at::Tensor hidden = parameters_.at("model.embed_tokens.weight")
                          .index_select(0, tokens_BT.flatten())
                          .unflatten(0, {tokens_BT.size(0), tokens_BT.size(1)});
  for (int64_t i = 0; i < config_.num_hidden_layers; ++i) {
    hidden = layer(hidden, i);
  }
  return linear(rms_norm(hidden, "model.norm", config_.rms_norm_eps), "lm_head");
}

at::Tensor Oracle::loss_sum(const at::Tensor& logits, const at::Tensor& targets) const {
  const at::Tensor log_p = at::log_softmax(logits.flatten(0, -2), 1);
  return at::nll_loss(log_p, targets.flatten(), {}, /*reduction: sum*/ 2, /*ignore_index=*/-100);
}

at::Tensor leaf(const at::Tensor& value) { return value.detach().clone().set_requires_grad(true); }

Named leaves(const Named& values) {
  Named copies;
  for (const auto& [name, value] : values) {
    copies[name] = leaf(value);
  }
  return copies;
}

Named gradients(const at::Tensor& objective, const Named& inputs) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : inputs) {
    tensors.push_back(tensor);
  }
  const auto found =
      torch::autograd::grad({objective}, tensors, {}, std::nullopt, false, /*allow_unused=*/true);
  Named result;
  size_t i = 0;
  for (const auto& [name, tensor] : inputs) {
    result[name] = found[i].defined() ? found[i] : at::zeros_like(tensor);
    ++i;
  }
  return result;
}

}  // namespace ciuic::core::testing
