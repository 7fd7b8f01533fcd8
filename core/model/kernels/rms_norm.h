// SPDX-License-Identifier: MIT
#pragma once

// RMSNorm, forward and backward.
//
//   r = 1 / sqrt(mean(x^2) + eps);  n = x r;  y = n w
//   dx = r (g - n mean(g n)),  g = dy w;   dw = sum over rows of dy n
//
// In f32 (f64 for f64); n is rounded to x's dtype before it meets w, as in transformers.
// Source: Root Mean Square Layer Normalization, arXiv:1910.07467, equation 4.

#include <ATen/core/Tensor.h>

namespace ciuic::core::kernels {

struct RmsNorm {
  at::Tensor y_ND;    // dtype of x, contiguous
  at::Tensor rstd_N;  // f32, or f64
};

/// x: [N, D], rows may be apart; weight: [D].
RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& weight_D, double epsilon);

/// Writes d loss / d x, plus `residual` [N, D] unless that is undefined, into `dx` [N, D], whose
/// rows may be apart. Returns d loss / d weight, f32 or f64 [D].
at::Tensor rms_norm_backward_out(const at::Tensor& dx_ND, const at::Tensor& dy_ND,
                                 const at::Tensor& x_ND, const at::Tensor& rstd_N,
                                 const at::Tensor& weight_D, const at::Tensor& residual_ND);

namespace reference {
RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& weight_D, double epsilon);
at::Tensor rms_norm_backward_out(const at::Tensor& dx_ND, const at::Tensor& dy_ND,
                                 const at::Tensor& x_ND, const at::Tensor& rstd_N,
                                 const at::Tensor& weight_D, const at::Tensor& residual_ND);
}  // namespace reference

namespace cpu {
RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& weight_D, double epsilon);
at::Tensor rms_norm_backward_out(const at::Tensor& dx_ND, const at::Tensor& dy_ND,
                                 const at::Tensor& x_ND, const at::Tensor& rstd_N,
                                 const at::Tensor& weight_D, const at::Tensor& residual_ND);
}  // namespace cpu

}  // namespace ciuic::core::kernels
