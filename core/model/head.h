// SPDX-License-Identifier: MIT
#pragma once

// The last unit: final norm, output head and cross entropy.
//
// The loss walks over chunks of tokens: a chunk's logits are computed in the compute dtype, turned
// into their own gradient in place, and used up, so logits never exist for all tokens and never in
// a second copy. Shapes: N tokens, D hidden, V vocabulary.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/gradient.h"
#include "core/model/model_config.h"

namespace ciuic::core {

/// A target with this value has no loss (transformers' ignore_index).
inline constexpr int64_t kIgnoredTarget = -100;

struct HeadLoss {
  double loss_sum = 0;     // sum over tokens, in f64, of f32 token losses
  int64_t num_tokens = 0;  // those with a target
};

struct HeadGradient {
  double loss_sum = 0;
  int64_t num_tokens = 0;
  at::Tensor dhidden;  // shape of hidden, scaled by `seed`
};

class Head final {
 public:
  explicit Head(const ModelConfig& config);

  /// `weights`: model.norm [D], lm_head [V, D]. hidden: [..., D]; targets: int64, the leading shape
  /// of hidden. Throws: InvalidArgument for a target outside the vocabulary.
  HeadGradient loss_and_backward(Bindings weights, const at::Tensor& hidden,
                                 const at::Tensor& targets, double seed) const;
  /// The same without the norm: of what PredictionLayer normed with its own. Adds to the head's
  /// gradient whatever `overwrite` says, since the main loss has written it.
  HeadGradient predicted_loss_and_backward(Bindings weights, const at::Tensor& normed,
                                           const at::Tensor& targets, double seed) const;
  HeadLoss predicted_loss(Bindings weights, const at::Tensor& normed,
                          const at::Tensor& targets) const;
  HeadLoss loss(Bindings weights, const at::Tensor& hidden, const at::Tensor& targets) const;
  /// [..., V]
  at::Tensor logits(Bindings weights, const at::Tensor& hidden) const;

  /// Tokens whose logits are held at once.
  [[nodiscard]] int64_t chunk_tokens(int64_t element_bytes) const;

 private:
  HeadGradient walk_backward(const Bound& head, const at::Tensor& normed_ND,
                             const at::Tensor& targets_N, double seed) const;
  HeadLoss walk(const Bound& head, const at::Tensor& normed_ND, const at::Tensor& targets_N) const;

  double epsilon_;
  int64_t vocab_size_;
};

}  // namespace ciuic::core
