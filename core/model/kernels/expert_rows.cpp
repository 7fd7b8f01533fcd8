// SPDX-License-Identifier: MIT
// Expert rows: choice of the kernel, and the compositions of LibTorch operations that they must
// agree with.
#include "core/model/kernels/expert_rows.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include "core/model/kernels/dtypes.h"

namespace ciuic::core::kernels {
namespace reference {

at::Tensor gather_rows(const at::Tensor& x_ND, const at::Tensor& token_of_row_R) {
  const at::Tensor rows = x_ND.index_select(0, token_of_row_R.clamp_min(0));
  return rows.masked_fill(token_of_row_R.lt(0).unsqueeze(1), 0);
}

void combine_rows_(const at::Tensor& out_ND, const at::Tensor& rows_RD,
                   const at::Tensor& row_of_choice_NK, const at::Tensor& weights_NK) {
  const at::ScalarType dtype = accumulate_dtype(out_ND.scalar_type());
  const auto sizes = row_of_choice_NK.sizes();
  at::Tensor chosen = rows_RD.index_select(0, row_of_choice_NK.reshape({-1})).to(dtype);
  chosen = chosen.view({sizes[0], sizes[1], out_ND.size(1)});
  if (weights_NK.defined()) {
    chosen = chosen.mul(weights_NK.unsqueeze(2));
  }
  out_ND.copy_(chosen.sum({1}).add(out_ND));
}

}  // namespace reference

at::Tensor gather_rows(const at::Tensor& x_ND, const at::Tensor& token_of_row_R) {
  return x_ND.is_cpu() ? cpu::gather_rows(x_ND, token_of_row_R)
                       : reference::gather_rows(x_ND, token_of_row_R);
}

void combine_rows_(const at::Tensor& out_ND, const at::Tensor& rows_RD,
                   const at::Tensor& row_of_choice_NK, const at::Tensor& weights_NK) {
  out_ND.is_cpu() ? cpu::combine_rows_(out_ND, rows_RD, row_of_choice_NK, weights_NK)
                  : reference::combine_rows_(out_ND, rows_RD, row_of_choice_NK, weights_NK);
}

at::Tensor choices_to_rows(const at::Tensor& values_NK, const at::Tensor& row_of_choice_NK,
                           int64_t num_rows) {
  at::Tensor rows = at::zeros({num_rows}, values_NK.options());
  return rows.index_copy_(0, row_of_choice_NK.reshape({-1}).to(at::kLong), values_NK.reshape({-1}));
}

at::Tensor rows_to_choices(const at::Tensor& values_R, const at::Tensor& row_of_choice_NK) {
  return values_R.index_select(0, row_of_choice_NK.reshape({-1})).view(row_of_choice_NK.sizes());
}

}  // namespace ciuic::core::kernels
