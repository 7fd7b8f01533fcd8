// SPDX-License-Identifier: MIT
#pragma once

// SwiGLU between the products of a feed-forward block: a = silu(g) u, where [g | u] lie side by
// side.
//
//   da/dg = sigmoid(g) (1 + g (1 - sigmoid(g))) u;   da/du = silu(g)
//
// Source: GLU Variants Improve Transformer, arXiv:2002.05202, equation 5.

#include <ATen/core/Tensor.h>

namespace ciuic::core::kernels {

/// gate_up: [R, 2I] contiguous -> [R, I].
at::Tensor swiglu(const at::Tensor& gate_up_RI);

/// With y = w down(a) and `da` = d loss / d a for w = 1, both replaced in place, so that no buffer
/// is added:
///   gate_up <- d loss / d gate_up;   da <- w a, which the gradient of `down` needs.
/// weights: f32 or f64 [R]; undefined: all 1. Returns d loss / d weights [R] = da . a, or
/// undefined.
at::Tensor swiglu_backward_(const at::Tensor& gate_up_RI, const at::Tensor& da_RI,
                            const at::Tensor& weights_R);

namespace reference {
at::Tensor swiglu(const at::Tensor& gate_up_RI);
at::Tensor swiglu_backward_(const at::Tensor& gate_up_RI, const at::Tensor& da_RI,
                            const at::Tensor& weights_R);
}  // namespace reference

namespace cpu {
at::Tensor swiglu(const at::Tensor& gate_up_RI);
at::Tensor swiglu_backward_(const at::Tensor& gate_up_RI, const at::Tensor& da_RI,
                            const at::Tensor& weights_R);
}  // namespace cpu

}  // namespace ciuic::core::kernels
