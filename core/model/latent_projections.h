// SPDX-License-Identifier: MIT
#pragma once

// The projections of latent attention, forward: hidden states down into latents, and latents up to
// queries, keys and values. What LatentAttention (all tokens at once) and CachedAttention (tokens
// after others) have in common.
//
//   q    = rope(q_b(norm(q_a(x))))          per head [nope | rope]; without a latent q = q_proj(x)
//   c, r = split(kv_a(x));  kv = kv_b(norm(c))  per head [k_nope | v]
//
// Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.3 and appendix C.
// Shapes: N tokens, D hidden, H heads, Q query latent, C key/value latent.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/gradient.h"
#include "core/model/kernels/mla_heads.h"
#include "core/model/model_config.h"
#include "core/model/rotary.h"

namespace ciuic::core {

/// A matrix and its bias; null: none.
struct Projection {
  const Bound* matrix = nullptr;
  const Bound* bias = nullptr;

  [[nodiscard]] at::Tensor forward(const at::Tensor& x) const;
  void accumulate_gradients(const at::Tensor& dy, const at::Tensor& x) const;
  [[nodiscard]] at::Tensor backward(const at::Tensor& dy) const;
};

/// What the way down leaves, and the norms that are taken of it.
struct Latents {
  at::Tensor x_ND;
  at::Tensor query_NQ, query_rstd_N, query_normed_NQ;  // with a query latent
  at::Tensor kv_rope_NC, kv_rstd_N, kv_normed_NC;      // the first is [N, C + rope], not turned yet
};

class LatentProjections final {
 public:
  explicit LatentProjections(const ModelConfig& config);

  struct Weights {
    Projection query_down;
    const Bound* query_norm = nullptr;
    Projection query_up;  // from the latent, or from x
    Projection latent_down;
    const Bound* latent_norm = nullptr;
    Projection latent_up;
    Projection output;
  };
  /// q_a_proj, q_a_layernorm, q_b_proj (or q_proj), kv_a_proj_with_mqa, kv_a_layernorm, kv_b_proj,
  /// o_proj; a bias follows its matrix.
  [[nodiscard]] size_t num_parameters() const {
    return (has_query_latent ? 7 : 5) + (has_biases ? (has_query_latent ? 3 : 2) : 0);
  }
  [[nodiscard]] Weights weights_of(Bindings bindings) const;

  /// Down: fills x, query and kv_rope.
  void project(const Weights& w, const at::Tensor& x_ND, Latents& latents) const;
  /// Fills the query's norm. Returns queries [N, H, nope + rope], turned by their positions.
  at::Tensor queries(const Weights& w, const kernels::Angles& angles, Latents& latents) const;
  /// Fills the norm of the key/value latent.
  void norm_latent(const Weights& w, Latents& latents) const;
  /// [N, H, nope + v] of normed latents, whose rows may be apart.
  [[nodiscard]] at::Tensor keys_values(const Weights& w, const at::Tensor& kv_normed_NC) const;
  /// residual + o_proj(out), out: [N, H * v]
  [[nodiscard]] at::Tensor output(const Weights& w, const at::Tensor& residual_ND,
                                  const at::Tensor& out_NV) const;

  const int64_t num_heads, nope_dim, rope_dim, v_dim, kv_latent_dim;
  const bool has_query_latent, has_biases;
  const double softmax_scale;
};

}  // namespace ciuic::core
