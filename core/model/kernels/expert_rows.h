// SPDX-License-Identifier: MIT
#pragma once

// Moving rows between token order and expert order, along the plan in expert_plan.h.
//
// Shapes: N tokens, D width, K choices per token, R rows sorted by expert.

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace ciuic::core::kernels {

/// out[r] = x[token_of_row[r]]; zeros where that is -1. token_of_row: int32 [R].
at::Tensor gather_rows(const at::Tensor& x_ND, const at::Tensor& token_of_row_R);

/// out[n] += sum over k of weights[n, k] rows[row_of_choice[n, k]], in the order of k; weights
/// undefined: all 1. row_of_choice: int32 [N, K]; weights: f32 or f64 [N, K].
void combine_rows_(const at::Tensor& out_ND, const at::Tensor& rows_RD,
                   const at::Tensor& row_of_choice_NK, const at::Tensor& weights_NK);

/// values [N, K] at their rows: [num_rows], zeros for rows without a token.
at::Tensor choices_to_rows(const at::Tensor& values_NK, const at::Tensor& row_of_choice_NK,
                           int64_t num_rows);

/// values [R] at their choices: [N, K].
at::Tensor rows_to_choices(const at::Tensor& values_R, const at::Tensor& row_of_choice_NK);

namespace reference {
at::Tensor gather_rows(const at::Tensor& x_ND, const at::Tensor& token_of_row_R);
void combine_rows_(const at::Tensor& out_ND, const at::Tensor& rows_RD,
                   const at::Tensor& row_of_choice_NK, const at::Tensor& weights_NK);
}  // namespace reference

namespace cpu {
at::Tensor gather_rows(const at::Tensor& x_ND, const at::Tensor& token_of_row_R);
void combine_rows_(const at::Tensor& out_ND, const at::Tensor& rows_RD,
                   const at::Tensor& row_of_choice_NK, const at::Tensor& weights_NK);
}  // namespace cpu

}  // namespace ciuic::core::kernels
