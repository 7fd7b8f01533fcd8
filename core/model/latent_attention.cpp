// SPDX-License-Identifier: MIT
#include "core/model/latent_attention.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>

#include "core/bench/step_clock.h"
#include "core/model/kernels/dtypes.h"
#include "core/model/kernels/mla_heads.h"
#include "core/model/kernels/rms_norm.h"
#include "core/model/linear.h"
#include "core/model/norm_backward.h"

namespace ciuic::core {
namespace {

kernels::Angles angles_of(const Rotary& rotary, const Rows& rows) {
  return {rotary.cosine(), rotary.sine(), rows.tokens, rows.positions_N, rotary.is_interleaved()};
}

at::Tensor by_sequence(const at::Tensor& x, const Rows& rows) {
  return x.unflatten(0, {rows.count, rows.tokens});
}

}  // namespace

void LatentAttentionTape::shrink() {
  latents.x_ND.reset();
  latents.query_normed_NQ.reset();
  latents.kv_normed_NC.reset();
  attention.q_BTHd.reset();
  attention.k_BTHd.reset();
  attention.v_BTHd.reset();
}

// From the latents up to queries, keys and values.
void LatentAttention::expand(const Weights& w, const Rows& rows, const Rotary& rotary,
                             LatentAttentionTape& tape) const {
  const LatentProjections& p = projections_;
  const kernels::Angles angles = angles_of(rotary, rows);
  const at::Tensor q = p.queries(w, angles, tape.latents);
  p.norm_latent(w, tape.latents);
  const at::Tensor kv = p.keys_values(w, tape.latents.kv_normed_NC);
  const at::Tensor k = kernels::assemble_keys(kv, tape.latents.kv_rope_NC, p.nope_dim, angles);
  tape.attention.q_BTHd = by_sequence(q, rows);
  tape.attention.k_BTHd = by_sequence(k, rows);
  tape.attention.v_BTHd = by_sequence(kv.narrow(2, p.nope_dim, p.v_dim), rows);
}

at::Tensor LatentAttention::forward(Bindings weights, const at::Tensor& x_ND,
                                    const at::Tensor& residual_ND, const Rows& rows,
                                    const Rotary& rotary, LatentAttentionTape* tape) const {
  const PartSpan part(Part::Attention);
  const Weights w = projections_.weights_of(weights);
  LatentAttentionTape made;
  projections_.project(w, x_ND, made.latents);
  expand(w, rows, rotary, made);
  const AttentionTape in = std::move(made.attention);
  const at::Tensor out = attention_forward(best_attention_path(in.q_BTHd), in.q_BTHd, in.k_BTHd,
                                           in.v_BTHd, {rows, projections_.softmax_scale},
                                           tape != nullptr ? &made.attention : nullptr);
  if (tape != nullptr) {
    *tape = std::move(made);
  }
  return projections_.output(w, residual_ND, out.view({rows.size(), -1}));
}

void LatentAttention::restore(Bindings weights, const at::Tensor& x_ND, const Rows& rows,
                              const Rotary& rotary, LatentAttentionTape& tape) const {
  const PartSpan part(Part::Attention);
  tape.latents.x_ND = x_ND;
  expand(projections_.weights_of(weights), rows, rotary, tape);
}

// Returns dx by way of the queries.
at::Tensor LatentAttention::query_backward(const Weights& w, const at::Tensor& dq_NH,
                                           const Latents& saved) const {
  if (!projections_.has_query_latent) {
    w.query_up.accumulate_gradients(dq_NH, saved.x_ND);
    return w.query_up.backward(dq_NH);
  }
  w.query_up.accumulate_gradients(dq_NH, saved.query_normed_NQ);
  const at::Tensor dnormed = w.query_up.backward(dq_NH);
  const at::Tensor dlatent =
      norm_backward(*w.query_norm, dnormed, saved.query_NQ, saved.query_rstd_N, {});
  w.query_down.accumulate_gradients(dlatent, saved.x_ND);
  return w.query_down.backward(dlatent);
}

at::Tensor LatentAttention::backward(Bindings weights, const at::Tensor& dy_ND, const Rows& rows,
                                     const Rotary& rotary, LatentAttentionTape& tape) const {
  const PartSpan part(Part::Attention);
  const LatentProjections& p = projections_;
  const Weights w = p.weights_of(weights);
  LatentAttentionTape saved = std::exchange(tape, {});
  const Latents& latents = saved.latents;
  const int64_t size = rows.size();
  const kernels::Angles angles = angles_of(rotary, rows);

  w.output.accumulate_gradients(dy_ND,
                                saved.attention.out_BTHd.view({size, p.num_heads * p.v_dim}));
  const at::Tensor dout =
      w.output.backward(dy_ND).view({rows.count, rows.tokens, p.num_heads, p.v_dim});
  const AttentionPath path = best_attention_path(saved.attention.q_BTHd);
  // Keys and values come from one matrix, and so their gradients meet in one.
  const at::Tensor dkv = at::empty({size, p.num_heads, p.nope_dim + p.v_dim}, dy_ND.options());
  const at::Tensor dv_BTHd = by_sequence(dkv.narrow(2, p.nope_dim, p.v_dim), rows);
  const auto [dq_BTHd, dk_BTHd] =
      attention_backward(path, dout, saved.attention, {rows, projections_.softmax_scale}, dv_BTHd);

  const at::Tensor dq = dq_BTHd.flatten(0, 1);
  kernels::rotate_queries_backward_(dq, angles);
  at::Tensor dx_ND = query_backward(w, dq.view({size, -1}), latents);

  // Keys and values: latent and shared rotary part meet in one matrix as well.
  const at::Tensor dlatent_rope = at::empty_like(latents.kv_rope_NC);
  kernels::assemble_keys_backward_(dkv, dlatent_rope, dk_BTHd.flatten(0, 1), angles);
  const at::Tensor dkv_flat = dkv.view({size, -1});
  w.latent_up.accumulate_gradients(dkv_flat, latents.kv_normed_NC);
  const at::Tensor dlatent_normed = w.latent_up.backward(dkv_flat);
  accumulate(*w.latent_norm, kernels::rms_norm_backward_out(
                                 dlatent_rope.narrow(1, 0, p.kv_latent_dim), dlatent_normed,
                                 latents.kv_rope_NC.narrow(1, 0, p.kv_latent_dim),
                                 latents.kv_rstd_N, w.latent_norm->value, {}));
  w.latent_down.accumulate_gradients(dlatent_rope, latents.x_ND);
  linear_backward_out(dx_ND, dlatent_rope, *w.latent_down.matrix, /*adds=*/true);
  return dx_ND;
}

}  // namespace ciuic::core
