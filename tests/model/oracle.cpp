// SPDX-License-Identifier: MIT
#include "tests/model/oracle.h"

#include <cmath>
#include <limits>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/log.h>
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
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/model/rotary.h"

namespace ciuic::core::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor arange(int64_t size) { return at::arange(size, at::kLong); }

}  // namespace

Oracle::Oracle(ModelConfig config, Named parameters, Named biases)
    : config_(std::move(config)), parameters_(std::move(parameters)), biases_(std::move(biases)) {}

at::Tensor Oracle::linear(const at::Tensor& x, const std::string& name) const {
  const at::Tensor y = at::matmul(x, parameters_.at(name + ".weight").t());
  const auto bias = parameters_.find(name + ".bias");
  return bias == parameters_.end() ? y : y.add(bias->second);
}

at::Tensor Oracle::embedding(const at::Tensor& tokens_BT) const {
  return parameters_.at("model.embed_tokens.weight")
      .index_select(0, tokens_BT.flatten())
      .unflatten(0, {tokens_BT.size(0), tokens_BT.size(1)});
}

const at::Tensor& Oracle::head() const {
  return parameters_.at(config_.tie_word_embeddings ? "model.embed_tokens.weight"
                                                    : "lm_head.weight");
}

// For each token the index of its document's first token.
at::Tensor Oracle::document_starts(const at::Tensor& x_BT) const {
  return starts_BT_.defined() ? starts_BT_ : at::zeros({x_BT.size(0), x_BT.size(1)}, at::kLong);
}

at::Tensor Oracle::rotate(const at::Tensor& x) const {
  Rotary rotary(config_, x.scalar_type(), at::kCPU);
  rotary.reserve(x.size(1));
  const at::Tensor positions = arange(x.size(1)).sub(document_starts(x)).flatten();
  const auto angles = [&](const at::Tensor& table) {
    return table.index_select(0, positions).unflatten(0, {x.size(0), x.size(1)}).unsqueeze(2);
  };
  const at::Tensor turns = at::complex(angles(rotary.cosine()), angles(rotary.sine()));
  const int64_t half = x.size(3) / 2;
  const at::Tensor pairs = config_.rope_interleave ? x.unflatten(3, {half, 2})
                                                   : x.unflatten(3, {2, half}).transpose(3, 4);
  const at::Tensor z = at::view_as_real(at::view_as_complex(pairs.contiguous()).mul(turns));
  return (config_.rope_interleave ? z : z.transpose(3, 4)).flatten(3, 4);
}

at::Tensor Oracle::rms_norm(const at::Tensor& x, const std::string& name, double epsilon) const {
  return x.mul(x.square().mean({-1}, true).add(epsilon).rsqrt())
      .mul(parameters_.at(name + ".weight"));
}

at::Tensor Oracle::attention(const at::Tensor& x_BTD, const std::string& prefix) const {
  const ModelConfig& c = config_;
  const int64_t heads = c.num_attention_heads;
  const int64_t tokens = x_BTD.size(1);
  const at::Tensor q_flat =
      c.q_lora_rank
          ? linear(rms_norm(linear(x_BTD, prefix + "q_a_proj"), prefix + "q_a_layernorm", 1e-6),
                   prefix + "q_b_proj")
          : linear(x_BTD, prefix + "q_proj");
  const at::Tensor q = q_flat.unflatten(2, {heads, c.qk_head_dim()});
  const at::Tensor latent_rope = linear(x_BTD, prefix + "kv_a_proj_with_mqa");
  const at::Tensor latent =
      rms_norm(latent_rope.narrow(2, 0, c.kv_lora_rank), prefix + "kv_a_layernorm", 1e-6);
  const at::Tensor kv =
      linear(latent, prefix + "kv_b_proj").unflatten(2, {heads, c.qk_nope_head_dim + c.v_head_dim});
  const at::Tensor k_rope =
      rotate(latent_rope.narrow(2, c.kv_lora_rank, c.qk_rope_head_dim).unsqueeze(2));
  const at::Tensor q_rope = rotate(q.narrow(3, c.qk_nope_head_dim, c.qk_rope_head_dim));
  const at::Tensor query = at::cat({q.narrow(3, 0, c.qk_nope_head_dim), q_rope}, 3).transpose(1, 2);
  const at::Tensor key =
      at::cat({kv.narrow(3, 0, c.qk_nope_head_dim), k_rope.expand({-1, -1, heads, -1})}, 3)
          .transpose(1, 2);
  const at::Tensor value = kv.narrow(3, c.qk_nope_head_dim, c.v_head_dim).transpose(1, 2);
  const at::Tensor past = document_starts(x_BTD).unsqueeze(2).gt(arange(tokens)).unsqueeze(1);
  const at::Tensor future =
      at::triu(at::ones({tokens, tokens}, query.options().dtype(at::kBool)), 1);
  const double m =
      0.1 * c.rope_parameters.mscale_all_dim.value_or(0) * std::log(c.rope_parameters.factor) + 1;
  const at::Tensor scores = at::matmul(query, key.transpose(2, 3))
                                .mul(m * m / std::sqrt(static_cast<double>(c.qk_head_dim())))
                                .masked_fill(future.logical_or(past), -kInfinity);
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
  if (c.n_group > 1 && c.topk_method != "greedy") {
    const int64_t judges = c.topk_method == "noaux_tc" ? 2 : 1;
    const at::Tensor group_scores = std::get<0>(grouped.topk(judges, -1)).sum({-1});
    const at::Tensor kept = std::get<1>(group_scores.topk(c.topk_group, -1));
    const at::Tensor mask = at::zeros_like(group_scores).scatter(1, kept, 1);
    choice = grouped.masked_fill(mask.eq(0).unsqueeze(-1), -kInfinity).flatten(1, 2);
  }
  return std::get<1>(choice.topk(c.num_experts_per_tok, -1));
}

at::Tensor Oracle::mixture(const at::Tensor& x_ND, const std::string& prefix) const {
  const at::Tensor logits = linear(x_ND, prefix + "gate");
  const at::Tensor scores =
      config_.scoring_func == "softmax" ? logits.softmax(1) : logits.sigmoid();
  const at::Tensor experts = chosen_experts(scores.detach(), prefix);
  add_terms(logits, scores, experts);
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

// The papers' formulas, sequence by sequence (core/model/objective.h).
void Oracle::add_terms(const at::Tensor& logits_NE, const at::Tensor& scores_NE,
                       const at::Tensor& experts_NK) const {
  const ModelConfig& c = config_;
  const int64_t experts = c.n_routed_experts;
  const int64_t groups = c.n_group;
  const int64_t tokens = scores_NE.size(0) / num_sequences_;
  at::Tensor sum = at::zeros({}, scores_NE.options());
  for (int64_t b = 0; b < num_sequences_; ++b) {
    const at::Tensor s = scores_NE.narrow(0, b * tokens, tokens);
    const at::Tensor shares = s.div(s.sum({1}, true));
    const at::Tensor chosen = c.topk_method == "noaux_tc"
                                  ? std::get<1>(s.topk(c.num_experts_per_tok, 1))
                                  : experts_NK.narrow(0, b * tokens, tokens);
    const at::Tensor hits = at::zeros_like(s).scatter(1, chosen, 1);
    const at::Tensor f = hits.sum({0})
                             .mul(static_cast<double>(experts))
                             .div(static_cast<double>(c.num_experts_per_tok * tokens));
    const at::Tensor p = shares.mean({0});
    const at::Tensor p_group = p.view({groups, -1}).sum({1});
    const at::Tensor f_group = f.view({groups, -1}).mean({1});
    const at::Tensor sent = hits.view({tokens, groups, -1}).sum({2}).gt(0).sum({0});
    const at::Tensor f_sent = sent.to(s.scalar_type())
                                  .mul(static_cast<double>(groups))
                                  .div(static_cast<double>(c.topk_group * tokens));
    const at::Tensor loss = f.mul(p)
                                .sum()
                                .mul(objective_.balance)
                                .add(f_group.mul(p_group).sum(), objective_.device_balance)
                                .add(f_sent.mul(p_group).sum(), objective_.communication_balance);
    sum = sum.add(loss, static_cast<double>(tokens));
  }
  balance_sum_ = balance_sum_.defined() ? balance_sum_.add(sum) : sum;
  const at::Tensor z = logits_NE.exp().sum({1}).log().square().sum().mul(objective_.router_z);
  z_sum_ = z_sum_.defined() ? z_sum_.add(z) : z;
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

at::Tensor Oracle::hidden(const at::Tensor& tokens_BT) const {
  num_sequences_ = tokens_BT.size(0);
  balance_sum_.reset();
  z_sum_.reset();
  at::Tensor hidden = embedding(tokens_BT);
  for (int64_t i = 0; i < config_.num_hidden_layers; ++i) {
    hidden = layer(hidden, i);
  }
  return hidden;
}

at::Tensor Oracle::logits(const at::Tensor& tokens_BT) const {
  return at::matmul(rms_norm(hidden(tokens_BT), "model.norm", config_.rms_norm_eps), head().t());
}

// Terms of the prediction layers' routers are added to those of the last `hidden`.
at::Tensor Oracle::prediction_loss_sum(const at::Tensor& tokens_BT,
                                       const at::Tensor& targets_BT) const {
  at::Tensor state = hidden(tokens_BT);
  at::Tensor sum = at::zeros({}, state.options());
  const int64_t tokens = tokens_BT.size(1);
  const at::Tensor starts = document_starts(tokens_BT);
  for (int64_t depth = 1; depth <= config_.num_nextn_predict_layers; ++depth) {
    const int64_t index = config_.num_hidden_layers + depth - 1;
    const std::string prefix = "model.layers." + std::to_string(index) + ".";
    const at::Tensor there = arange(tokens).add(depth).clamp_max(tokens - 1);
    const at::Tensor exists = arange(tokens).add(depth).lt(tokens);
    const at::Tensor further = at::where(exists, tokens_BT.index_select(1, there), 0);
    const at::Tensor input =
        at::cat({rms_norm(embedding(further), prefix + "enorm", config_.rms_norm_eps),
                 rms_norm(state, prefix + "hnorm", config_.rms_norm_eps)},
                2);
    state = layer(linear(input, prefix + "eh_proj"), index);
    const at::Tensor normed = rms_norm(state, prefix + "shared_head.norm", config_.rms_norm_eps);
    const at::Tensor same = starts.index_select(1, there).eq(starts).logical_and(exists);
    const at::Tensor wanted = at::where(same, targets_BT.index_select(1, there), -100);
    sum = sum.add(loss_sum(at::matmul(normed, head().t()), wanted));
  }
  return sum;
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
