// SPDX-License-Identifier: MIT
#pragma once

// Latent attention of tokens that follow those in a cache: forward only.
//
// Three ways to the same numbers, chosen by their multiplications:
//
//   Whole     nothing is cached yet: as LatentAttention, whose bits it has
//   Expanded  many new tokens: keys and values of all tokens are made again from the latents
//   Absorbed  few: with W_uk and W_uv the halves of kv_b, q_nope^T (W_uk c) = (W_uk^T q_nope)^T c
//             and sum p (W_uv c) = W_uv (sum p c), so that heads attend to the latents themselves
//
// Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.2 and appendix C.
// Shapes: N new tokens, T old and new, H heads, C latent, R rotary.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/gradient.h"
#include "core/model/latent_projections.h"
#include "core/model/model_config.h"
#include "core/model/rotary.h"

namespace ciuic::core {

enum class CachedPath { Whole, Expanded, Absorbed };

class CachedAttention final {
 public:
  explicit CachedAttention(const ModelConfig& config) : projections_(config) {}

  /// `cached`: [T, C + R], a layer of LatentCache; its last N rows are written. `weights` as those
  /// of LatentAttention; `rotary` has T positions.
  at::Tensor forward(Bindings weights, const at::Tensor& x_ND, const at::Tensor& residual_ND,
                     const Rotary& rotary, const at::Tensor& cached_TC) const;

  /// For `added` tokens after `length`.
  [[nodiscard]] CachedPath best_path(int64_t length, int64_t added) const;

 private:
  using Weights = LatentProjections::Weights;
  at::Tensor whole(const Weights& w, const at::Tensor& q_NHd, const Latents& latents,
                   const kernels::Angles& angles) const;
  at::Tensor expanded(const Weights& w, const at::Tensor& q_NHd, const at::Tensor& cached_TC) const;
  at::Tensor absorbed(const Weights& w, const at::Tensor& q_NHd, const at::Tensor& cached_TC) const;

  LatentProjections projections_;
};

}  // namespace ciuic::core
