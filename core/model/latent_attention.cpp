// SPDX-License-Identifier: MIT
#include "core/model/latent_attention.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "core/model/kernels/mla_heads.h"
#include "core/model/kernels/rms_norm.h"
#include "core/model/product.h"

namespace ciuic::core {
namespace {

// transformers leaves the latent norms at the default of their class, whatever rms_norm_eps says.
constexpr double kLatentEpsilon = 1e-6;

// Positions of the parameters within the block.
enum Weight { kQueryDown, kQueryNorm, kQueryUp, kLatentDown, kLatentNorm, kLatentUp, kOutput };

at::Tensor project(const at::Tensor& x, const Bound& weight) {
  return product(x, weight.value.t());
}

kernels::Angles angles_of(const Rotary& rotary, int64_t num_positions) {
  return {rotary.cosine(), rotary.sine(), num_positions};
}

}  // namespace

LatentAttention::LatentAttention(const ModelConfig& config)
    : num_heads_(config.num_attention_heads),
      nope_dim_(config.qk_nope_head_dim),
      rope_dim_(config.qk_rope_head_dim),
      v_dim_(config.v_head_dim),
      kv_latent_dim_(config.kv_lora_rank) {}

at::Tensor LatentAttention::forward(Bindings weights, const at::Tensor& x_ND,
                                    const at::Tensor& residual_ND, int64_t num_sequences,
                                    const Rotary& rotary, LatentAttentionTape* tape) const {
  const int64_t rows = x_ND.size(0);
  const int64_t tokens = rows / num_sequences;
  const kernels::Angles angles = angles_of(rotary, tokens);

  const at::Tensor query_latent = project(x_ND, weights[kQueryDown]);
  const auto [query_normed, query_rstd] =
      kernels::rms_norm(query_latent, weights[kQueryNorm].value, kLatentEpsilon);
  const at::Tensor q =
      project(query_normed, weights[kQueryUp]).view({rows, num_heads_, nope_dim_ + rope_dim_});
  kernels::rotate_queries_(q, angles);

  const at::Tensor latent_rope = project(x_ND, weights[kLatentDown]);
  const auto [latent_normed, latent_rstd] = kernels::rms_norm(
      latent_rope.narrow(1, 0, kv_latent_dim_), weights[kLatentNorm].value, kLatentEpsilon);
  const at::Tensor kv =
      project(latent_normed, weights[kLatentUp]).view({rows, num_heads_, nope_dim_ + v_dim_});
  const at::Tensor k = kernels::assemble_keys(kv, latent_rope, nope_dim_, angles);

  const auto by_sequence = [&](const at::Tensor& x) {
    return x.unflatten(0, {num_sequences, tokens});
  };
  const at::Tensor v = kv.narrow(2, nope_dim_, v_dim_);
  const at::Tensor out =
      attention_forward(best_attention_path(q, v), by_sequence(q), by_sequence(k), by_sequence(v),
                        tape != nullptr ? &tape->attention : nullptr);
  if (tape != nullptr) {
    tape->x_ND = x_ND;
    tape->query_latent_NQ = query_latent;
    tape->query_latent_rstd_N = query_rstd;
    tape->query_latent_normed_NQ = query_normed;
    tape->kv_latent_rope_NC = latent_rope;
    tape->kv_latent_rstd_N = latent_rstd;
    tape->kv_latent_normed_NC = latent_normed;
  }
  return add_product(residual_ND, out.view({rows, num_heads_ * v_dim_}),
                     weights[kOutput].value.t());
}

at::Tensor LatentAttention::backward(Bindings weights, const at::Tensor& dy_ND,
                                     int64_t num_sequences, const Rotary& rotary,
                                     LatentAttentionTape& tape) const {
  LatentAttentionTape saved = std::exchange(tape, {});
  const int64_t rows = dy_ND.size(0);
  const int64_t tokens = rows / num_sequences;
  const kernels::Angles angles = angles_of(rotary, tokens);

  accumulate_product(weights[kOutput], dy_ND,
                     saved.attention.out_BTHd.view({rows, num_heads_ * v_dim_}));
  const at::Tensor dout =
      product(dy_ND, weights[kOutput].value).view({num_sequences, tokens, num_heads_, v_dim_});
  const AttentionPath path = best_attention_path(saved.attention.q_BTHd, saved.attention.v_BTHd);
  // Keys and values come from one matrix, and so their gradients meet in one.
  const at::Tensor dkv = at::empty({rows, num_heads_, nope_dim_ + v_dim_}, dy_ND.options());
  const at::Tensor dv_BTHd = dkv.narrow(2, nope_dim_, v_dim_).unflatten(0, {num_sequences, tokens});
  const auto [dq_BTHd, dk_BTHd] = attention_backward(path, dout, saved.attention, dv_BTHd);

  // Queries: turn back, then down through the latent.
  const at::Tensor dq = dq_BTHd.flatten(0, 1);
  kernels::rotate_queries_backward_(dq, angles);
  const at::Tensor dq_flat = dq.view({rows, -1});
  accumulate_product(weights[kQueryUp], dq_flat, saved.query_latent_normed_NQ);
  const at::Tensor dquery_normed = product(dq_flat, weights[kQueryUp].value);
  const at::Tensor dquery_latent = at::empty_like(saved.query_latent_NQ);
  accumulate(weights[kQueryNorm], kernels::rms_norm_backward_out(
                                      dquery_latent, dquery_normed, saved.query_latent_NQ,
                                      saved.query_latent_rstd_N, weights[kQueryNorm].value, {}));
  accumulate_product(weights[kQueryDown], dquery_latent, saved.x_ND);
  at::Tensor dx_ND = product(dquery_latent, weights[kQueryDown].value);

  // Keys and values: latent and shared rotary part meet in one matrix as well.
  const at::Tensor dlatent_rope = at::empty_like(saved.kv_latent_rope_NC);
  kernels::assemble_keys_backward_(dkv, dlatent_rope, dk_BTHd.flatten(0, 1), angles);
  const at::Tensor dkv_flat = dkv.view({rows, -1});
  accumulate_product(weights[kLatentUp], dkv_flat, saved.kv_latent_normed_NC);
  const at::Tensor dlatent_normed = product(dkv_flat, weights[kLatentUp].value);
  accumulate(weights[kLatentNorm], kernels::rms_norm_backward_out(
                                       dlatent_rope.narrow(1, 0, kv_latent_dim_), dlatent_normed,
                                       saved.kv_latent_rope_NC.narrow(1, 0, kv_latent_dim_),
                                       saved.kv_latent_rstd_N, weights[kLatentNorm].value, {}));
  accumulate_product(weights[kLatentDown], dlatent_rope, saved.x_ND);
  product_out(dx_ND, dlatent_rope, weights[kLatentDown].value, /*adds=*/true);
  return dx_ND;
}

}  // namespace ciuic::core
