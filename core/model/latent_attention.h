// SPDX-License-Identifier: MIT
#pragma once

// Multi-head latent attention (MLA): queries and keys/values are projected through small latents.
//
//   q    = q_b(norm(q_a(x)))                 per head [nope | rope]; without a latent q = q_proj(x)
//   c, r = split(kv_a(x));  kv = kv_b(norm(c))  per head [k_nope | v]
//   k    = [k_nope | rope(r)]                   r is shared by all heads
//   y    = residual + o(softmax(scale q k^T, causal) v)
//
// The tape holds what is dear to compute; queries, keys, values and normed latents can be computed
// again from it (`restore`), which selective recomputation does.
// Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.3 and appendix C.
// Shapes: B batch, T tokens, N = B*T, D hidden, H heads, Q query latent, C key/value latent.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/attention.h"
#include "core/model/gradient.h"
#include "core/model/model_config.h"
#include "core/model/rotary.h"

namespace ciuic::core {

struct LatentAttentionTape {
  at::Tensor x_ND;
  at::Tensor query_latent_NQ, query_latent_rstd_N, query_latent_normed_NQ;  // with a query latent
  at::Tensor kv_latent_rope_NC, kv_latent_rstd_N,
      kv_latent_normed_NC;  // the first is [N, C + rope]
  AttentionTape attention;

  /// Keeps what `restore` cannot give back.
  void shrink();
};

class LatentAttention final {
 public:
  explicit LatentAttention(const ModelConfig& config);

  /// q_a_proj, q_a_layernorm, q_b_proj (or q_proj), kv_a_proj_with_mqa, kv_a_layernorm, kv_b_proj,
  /// o_proj; a bias follows its matrix.
  [[nodiscard]] size_t num_parameters() const {
    return (has_query_latent_ ? 7 : 5) + (has_biases_ ? (has_query_latent_ ? 3 : 2) : 0);
  }

  /// `x` is the normed input of the block, rows ordered by sequence, then position.
  at::Tensor forward(Bindings weights, const at::Tensor& x_ND, const at::Tensor& residual_ND,
                     const Rows& rows, const Rotary& rotary, LatentAttentionTape* tape) const;
  /// Puts back what `tape.shrink` dropped: the same bits.
  void restore(Bindings weights, const at::Tensor& x_ND, const Rows& rows, const Rotary& rotary,
               LatentAttentionTape& tape) const;
  /// Returns dx (the residual's gradient is dy itself). Empties the tape.
  at::Tensor backward(Bindings weights, const at::Tensor& dy_ND, const Rows& rows,
                      const Rotary& rotary, LatentAttentionTape& tape) const;

 private:
  struct Weights;
  [[nodiscard]] Weights weights_of(Bindings bindings) const;
  void project(const Weights& w, const at::Tensor& x_ND, LatentAttentionTape& tape) const;
  void expand(const Weights& w, const Rows& rows, const Rotary& rotary,
              LatentAttentionTape& tape) const;
  at::Tensor query_backward(const Weights& w, const at::Tensor& dq_NH,
                            const LatentAttentionTape& saved) const;

  int64_t num_heads_, nope_dim_, rope_dim_, v_dim_, kv_latent_dim_;
  bool has_query_latent_, has_biases_;
  double softmax_scale_;
};

}  // namespace ciuic::core
