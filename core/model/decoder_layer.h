// SPDX-License-Identifier: MIT
#pragma once

// One layer: h = x + attention(norm(x));  y = h + feed_forward(norm(h)), where the feed-forward
// block is a dense SwiGLU in the first layers and a mixture of experts in the others.

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "core/model/cached_attention.h"
#include "core/model/gradient.h"
#include "core/model/latent_attention.h"
#include "core/model/mixture_of_experts.h"
#include "core/model/model_config.h"
#include "core/model/recompute.h"
#include "core/model/rotary.h"
#include "core/model/swiglu_mlp.h"

namespace ciuic::core {

/// What one layer's backward needs from its forward. Opaque to the trainer, who keeps one per layer
/// and micro-batch in flight.
struct LayerTape {
  at::Tensor x_ND, x_rstd_N;
  LatentAttentionTape attention;
  at::Tensor middle_ND, middle_rstd_N;
  SwigluTape dense;
  MixtureTape mixture;
  Recompute recompute = Recompute::None;

  [[nodiscard]] bool is_empty() const { return !x_ND.defined(); }
  void clear() { *this = LayerTape(); }
};

/// What all layers share in one micro-batch.
struct LayerContext {
  const Rows& rows;
  const Rotary& rotary;
};

class DecoderLayer final {
 public:
  DecoderLayer(const ModelConfig& config, int64_t layer, const ExpertShare& share = {});

  /// `weights`: input_layernorm, those of LatentAttention, post_attention_layernorm, those of the
  /// feed-forward block; others may follow.
  at::Tensor forward(Bindings weights, const at::Tensor& x_BTD, const LayerContext& context,
                     const RouterPass& router, Recompute recompute, LayerTape* tape) const;
  /// The same for tokens that follow those in a layer of LatentCache, `cached` [T, C + R]; x: [N, D].
  at::Tensor forward_cached(Bindings weights, const at::Tensor& x_ND, const at::Tensor& cached_TC,
                            const Rotary& rotary, const RouterPass& router) const;
  /// `router.bias_E` as in the forward. Empties the tape.
  at::Tensor backward(Bindings weights, const at::Tensor& dy_BTD, const LayerContext& context,
                      const RouterPass& router, LayerTape& tape) const;

  /// For a rank without tokens, where experts are shared out over ranks: this layer's work for the
  /// others. backward writes
  /// gradients of experts only. `rows`: of hidden states.
  void serve(Bindings weights, const at::TensorOptions& rows, const ExpertExchange& exchange,
             Recompute recompute, LayerTape* tape) const;
  void serve_backward(Bindings weights, const at::TensorOptions& rows,
                      const ExpertExchange& exchange, LayerTape& tape) const;

  [[nodiscard]] bool is_mixture() const { return mixture_.has_value(); }

 private:
  [[nodiscard]] size_t middle_norm() const { return 1 + attention_.num_parameters(); }
  [[nodiscard]] at::Tensor feed_forward(Bindings weights, const at::Tensor& normed_ND,
                                        const at::Tensor& middle_ND, const RouterPass& router,
                                        LayerTape* tape) const;
  void restore(Bindings weights, const LayerContext& context, const RouterPass& router,
               LayerTape& tape) const;

  double epsilon_;
  LatentAttention attention_;
  CachedAttention cached_attention_;
  std::optional<MixtureOfExperts> mixture_;
};

}  // namespace ciuic::core
