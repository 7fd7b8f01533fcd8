// SPDX-License-Identifier: MIT
#pragma once

// One layer: h = x + attention(norm(x));  y = h + feed_forward(norm(h)), where the feed-forward
// block is a dense SwiGLU in the first layers and a mixture of experts in the others.

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "core/model/gradient.h"
#include "core/model/latent_attention.h"
#include "core/model/mixture_of_experts.h"
#include "core/model/model_config.h"
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

  [[nodiscard]] bool is_empty() const { return !x_ND.defined(); }
  void clear() { *this = LayerTape(); }
};

class DecoderLayer final {
 public:
  DecoderLayer(const ModelConfig& config, int64_t layer);

  /// `weights`: input_layernorm, those of LatentAttention, post_attention_layernorm, those of the
  /// feed-forward block. `bias` and `loads` as in MixtureOfExperts; undefined in dense layers.
  at::Tensor forward(Bindings weights, const at::Tensor& x_BTD, const Rotary& rotary,
                     const at::Tensor& bias_E, const at::Tensor& loads_E, LayerTape* tape) const;
  at::Tensor backward(Bindings weights, const at::Tensor& dy_BTD, const Rotary& rotary,
                      LayerTape& tape) const;

  [[nodiscard]] bool is_mixture() const { return mixture_.has_value(); }

 private:
  double epsilon_;
  LatentAttention attention_;
  std::optional<MixtureOfExperts> mixture_;
};

}  // namespace ciuic::core
