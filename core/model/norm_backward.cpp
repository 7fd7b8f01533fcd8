// SPDX-License-Identifier: MIT
#include "core/model/norm_backward.h"

#include <ATen/ops/empty_like.h>

#include "core/model/kernels/rms_norm.h"

namespace ciuic::core {

at::Tensor norm_backward(const Bound& weight, const at::Tensor& dy_ND, const at::Tensor& x_ND,
                         const at::Tensor& rstd_N, const at::Tensor& residual_ND) {
  at::Tensor dx_ND = at::empty_like(x_ND);
  accumulate(weight,
             kernels::rms_norm_backward_out(dx_ND, dy_ND, x_ND, rstd_N, weight.value, residual_ND));
  return dx_ND;
}

}  // namespace ciuic::core
