// SPDX-License-Identifier: MIT
#pragma once

// Cross entropy of logits against token ids, and its gradient in the place of the logits.
//
//   loss = log(sum exp(z)) - z[target];   dz = seed (softmax(z) - onehot(target))
//
// In f32 (f64 for f64), whatever dtype the logits have. Rows without a target have neither loss nor
// gradient.

#include <ATen/core/Tensor.h>

namespace ciuic::core::kernels {

/// logits: [N, V] contiguous; targets: int64 [N], below 0: none. Returns the losses, f32 or f64
/// [N].
at::Tensor cross_entropy(const at::Tensor& logits_NV, const at::Tensor& targets_N);

/// The same, and replaces the logits by their gradient times `seed`.
at::Tensor cross_entropy_backward_(const at::Tensor& logits_NV, const at::Tensor& targets_N,
                                   double seed);

namespace reference {
at::Tensor cross_entropy(const at::Tensor& logits_NV, const at::Tensor& targets_N);
at::Tensor cross_entropy_backward_(const at::Tensor& logits_NV, const at::Tensor& targets_N,
                                   double seed);
}  // namespace reference

namespace cpu {
at::Tensor cross_entropy(const at::Tensor& logits_NV, const at::Tensor& targets_N);
at::Tensor cross_entropy_backward_(const at::Tensor& logits_NV, const at::Tensor& targets_N,
                                   double seed);
}  // namespace cpu

}  // namespace ciuic::core::kernels
