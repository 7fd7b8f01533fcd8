// SPDX-License-Identifier: MIT
#pragma once

// Multi-head latent attention (MLA): queries and keys/values are projected through small latents.
//
//   q, r, k_nope, v: latent_projections.h
//   k = [k_nope | rope(r)]                  r is shared by all heads
//   y = residual + o(softmax(scale q k^T, causal) v)
//
// The tape holds what is dear to compute; queries, keys, values and normed latents can be computed
// again from it (`restore`), which selective recomputation does.
// Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.3 and appendix C.
// Shapes: B batch, T tokens, N = B*T, D hidden, H heads, Q query latent, C key/value latent.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/attention.h"
#include "core/model/gradient.h"
#include "core/model/latent_projections.h"
#include "core/model/model_config.h"
#include "core/model/rotary.h"

namespace ciuic::core {

struct LatentAttentionTape {
  Latents latents;
  AttentionTape attention;

  /// Keeps what `restore` cannot give back.
  void shrink();
};

class LatentAttention final {
 public:
  explicit LatentAttention(const ModelConfig& config) : projections_(config) {}

  [[nodiscard]] size_t num_parameters() const { return projections_.num_parameters(); }

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
  using Weights = LatentProjections::Weights;
  void expand(const Weights& w, const Rows& rows, const Rotary& rotary,
              LatentAttentionTape& tape) const;
  at::Tensor query_backward(const Weights& w, const at::Tensor& dq_NH, const Latents& saved) const;

  LatentProjections projections_;
};

}  // namespace ciuic::core
