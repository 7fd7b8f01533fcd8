// SPDX-License-Identifier: MIT
#include "core/model/latent_attention.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>

#include "core/model/kernels/dtypes.h"
#include "core/model/kernels/mla_heads.h"
#include "core/model/kernels/rms_norm.h"
#include "core/model/product.h"

namespace ciuic::core {
namespace {

// transformers leaves the latent norms at the default of their class, whatever rms_norm_eps says.
constexpr double kLatentEpsilon = 1e-6;

// A matrix and its bias; null: none.
struct Projection {
  const Bound* matrix = nullptr;
  const Bound* bias = nullptr;

  [[nodiscard]] at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor y = product(x, matrix->value.t());
    return bias != nullptr ? y.add_(bias->value) : y;
  }
  void accumulate_gradients(const at::Tensor& dy, const at::Tensor& x) const {
    accumulate_product(*matrix, dy, x);
    if (bias != nullptr) {
      accumulate(*bias,
                 dy.sum({0}, /*keepdim=*/false, kernels::accumulate_dtype(dy.scalar_type())));
    }
  }
  [[nodiscard]] at::Tensor backward(const at::Tensor& dy) const {
    return product(dy, matrix->value);
  }
};

kernels::Angles angles_of(const Rotary& rotary, const Rows& rows) {
  return {rotary.cosine(), rotary.sine(), rows.tokens, rows.positions_N, rotary.is_interleaved()};
}

at::Tensor by_sequence(const at::Tensor& x, const Rows& rows) {
  return x.unflatten(0, {rows.count, rows.tokens});
}

}  // namespace

struct LatentAttention::Weights {
  Projection query_down;
  const Bound* query_norm = nullptr;
  Projection query_up;  // from the latent, or from x
  Projection latent_down;
  const Bound* latent_norm = nullptr;
  Projection latent_up;
  Projection output;
};

void LatentAttentionTape::shrink() {
  x_ND.reset();
  query_latent_normed_NQ.reset();
  kv_latent_normed_NC.reset();
  attention.q_BTHd.reset();
  attention.k_BTHd.reset();
  attention.v_BTHd.reset();
}

LatentAttention::LatentAttention(const ModelConfig& config)
    : num_heads_(config.num_attention_heads),
      nope_dim_(config.qk_nope_head_dim),
      rope_dim_(config.qk_rope_head_dim),
      v_dim_(config.v_head_dim),
      kv_latent_dim_(config.kv_lora_rank),
      has_query_latent_(config.q_lora_rank.has_value()),
      has_biases_(config.attention_bias),
      softmax_scale_(config.softmax_scale()) {}

LatentAttention::Weights LatentAttention::weights_of(Bindings bindings) const {
  const Bound* next = bindings.data();
  const auto with_bias = [&] {
    Projection p{next++, nullptr};
    p.bias = has_biases_ ? next++ : nullptr;
    return p;
  };
  Weights w;
  if (has_query_latent_) {
    w.query_down = with_bias();
    w.query_norm = next++;
  }
  w.query_up.matrix = next++;
  w.latent_down = with_bias();
  w.latent_norm = next++;
  w.latent_up.matrix = next++;
  w.output = with_bias();
  return w;
}

// Down into the latents.
void LatentAttention::project(const Weights& w, const at::Tensor& x_ND,
                              LatentAttentionTape& tape) const {
  tape.x_ND = x_ND;
  if (has_query_latent_) {
    tape.query_latent_NQ = w.query_down.forward(x_ND);
  }
  tape.kv_latent_rope_NC = w.latent_down.forward(x_ND);
}

// From the latents up to queries, keys and values.
void LatentAttention::expand(const Weights& w, const Rows& rows, const Rotary& rotary,
                             LatentAttentionTape& tape) const {
  const int64_t size = rows.size();
  const kernels::Angles angles = angles_of(rotary, rows);
  if (has_query_latent_) {
    kernels::RmsNorm norm =
        kernels::rms_norm(tape.query_latent_NQ, w.query_norm->value, kLatentEpsilon);
    tape.query_latent_normed_NQ = std::move(norm.y_ND);
    tape.query_latent_rstd_N = std::move(norm.rstd_N);
  }
  const at::Tensor q =
      w.query_up.forward(has_query_latent_ ? tape.query_latent_normed_NQ : tape.x_ND)
          .view({size, num_heads_, nope_dim_ + rope_dim_});
  kernels::rotate_queries_(q, angles);

  kernels::RmsNorm norm = kernels::rms_norm(tape.kv_latent_rope_NC.narrow(1, 0, kv_latent_dim_),
                                            w.latent_norm->value, kLatentEpsilon);
  tape.kv_latent_normed_NC = std::move(norm.y_ND);
  tape.kv_latent_rstd_N = std::move(norm.rstd_N);
  const at::Tensor kv =
      w.latent_up.forward(tape.kv_latent_normed_NC).view({size, num_heads_, nope_dim_ + v_dim_});
  const at::Tensor k = kernels::assemble_keys(kv, tape.kv_latent_rope_NC, nope_dim_, angles);
  tape.attention.q_BTHd = by_sequence(q, rows);
  tape.attention.k_BTHd = by_sequence(k, rows);
  tape.attention.v_BTHd = by_sequence(kv.narrow(2, nope_dim_, v_dim_), rows);
}

at::Tensor LatentAttention::forward(Bindings weights, const at::Tensor& x_ND,
                                    const at::Tensor& residual_ND, const Rows& rows,
                                    const Rotary& rotary, LatentAttentionTape* tape) const {
  const Weights w = weights_of(weights);
  LatentAttentionTape made;
  project(w, x_ND, made);
  expand(w, rows, rotary, made);
  const AttentionTape in = std::move(made.attention);
  const at::Tensor out =
      attention_forward(best_attention_path(in.q_BTHd), in.q_BTHd, in.k_BTHd, in.v_BTHd,
                        {rows, softmax_scale_}, tape != nullptr ? &made.attention : nullptr);
  if (tape != nullptr) {
    *tape = std::move(made);
  }
  at::Tensor y_ND = add_product(residual_ND, out.view({rows.size(), num_heads_ * v_dim_}),
                                w.output.matrix->value.t());
  return w.output.bias != nullptr ? y_ND.add_(w.output.bias->value) : y_ND;
}

void LatentAttention::restore(Bindings weights, const at::Tensor& x_ND, const Rows& rows,
                              const Rotary& rotary, LatentAttentionTape& tape) const {
  tape.x_ND = x_ND;
  expand(weights_of(weights), rows, rotary, tape);
}

// Returns dx by way of the queries.
at::Tensor LatentAttention::query_backward(const Weights& w, const at::Tensor& dq_NH,
                                           const LatentAttentionTape& saved) const {
  if (!has_query_latent_) {
    w.query_up.accumulate_gradients(dq_NH, saved.x_ND);
    return w.query_up.backward(dq_NH);
  }
  w.query_up.accumulate_gradients(dq_NH, saved.query_latent_normed_NQ);
  const at::Tensor dnormed = w.query_up.backward(dq_NH);
  const at::Tensor dlatent = at::empty_like(saved.query_latent_NQ);
  accumulate(*w.query_norm,
             kernels::rms_norm_backward_out(dlatent, dnormed, saved.query_latent_NQ,
                                            saved.query_latent_rstd_N, w.query_norm->value, {}));
  w.query_down.accumulate_gradients(dlatent, saved.x_ND);
  return w.query_down.backward(dlatent);
}

at::Tensor LatentAttention::backward(Bindings weights, const at::Tensor& dy_ND, const Rows& rows,
                                     const Rotary& rotary, LatentAttentionTape& tape) const {
  const Weights w = weights_of(weights);
  LatentAttentionTape saved = std::exchange(tape, {});
  const int64_t size = rows.size();
  const kernels::Angles angles = angles_of(rotary, rows);

  w.output.accumulate_gradients(dy_ND, saved.attention.out_BTHd.view({size, num_heads_ * v_dim_}));
  const at::Tensor dout =
      w.output.backward(dy_ND).view({rows.count, rows.tokens, num_heads_, v_dim_});
  const AttentionPath path = best_attention_path(saved.attention.q_BTHd);
  // Keys and values come from one matrix, and so their gradients meet in one.
  const at::Tensor dkv = at::empty({size, num_heads_, nope_dim_ + v_dim_}, dy_ND.options());
  const at::Tensor dv_BTHd = by_sequence(dkv.narrow(2, nope_dim_, v_dim_), rows);
  const auto [dq_BTHd, dk_BTHd] =
      attention_backward(path, dout, saved.attention, {rows, softmax_scale_}, dv_BTHd);

  const at::Tensor dq = dq_BTHd.flatten(0, 1);
  kernels::rotate_queries_backward_(dq, angles);
  at::Tensor dx_ND = query_backward(w, dq.view({size, -1}), saved);

  // Keys and values: latent and shared rotary part meet in one matrix as well.
  const at::Tensor dlatent_rope = at::empty_like(saved.kv_latent_rope_NC);
  kernels::assemble_keys_backward_(dkv, dlatent_rope, dk_BTHd.flatten(0, 1), angles);
  const at::Tensor dkv_flat = dkv.view({size, -1});
  w.latent_up.accumulate_gradients(dkv_flat, saved.kv_latent_normed_NC);
  const at::Tensor dlatent_normed = w.latent_up.backward(dkv_flat);
  accumulate(*w.latent_norm, kernels::rms_norm_backward_out(
                                 dlatent_rope.narrow(1, 0, kv_latent_dim_), dlatent_normed,
                                 saved.kv_latent_rope_NC.narrow(1, 0, kv_latent_dim_),
                                 saved.kv_latent_rstd_N, w.latent_norm->value, {}));
  w.latent_down.accumulate_gradients(dlatent_rope, saved.x_ND);
  product_out(dx_ND, dlatent_rope, w.latent_down.matrix->value, /*adds=*/true);
  return dx_ND;
}

}  // namespace ciuic::core
