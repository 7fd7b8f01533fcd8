// SPDX-License-Identifier: MIT
#pragma once

// The gradient of an embedding: rows added up at their tokens, in the order of the tokens, so that
// bits repeat.

#include <ATen/core/Tensor.h>

namespace ciuic::core::kernels {

/// gradient[tokens[n]] += rows[n]. gradient: f32 or f64 [V, D]; tokens: int64 [N], within [0, V);
/// rows: [N, D].
void add_rows_at_(const at::Tensor& gradient_VD, const at::Tensor& tokens_N,
                  const at::Tensor& rows_ND);

namespace reference {
void add_rows_at_(const at::Tensor& gradient_VD, const at::Tensor& tokens_N,
                  const at::Tensor& rows_ND);
}  // namespace reference

namespace cpu {
void add_rows_at_(const at::Tensor& gradient_VD, const at::Tensor& tokens_N,
                  const at::Tensor& rows_ND);
}  // namespace cpu

}  // namespace ciuic::core::kernels
