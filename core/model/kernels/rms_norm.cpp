// SPDX-License-Identifier: MIT
// RMSNorm: choice of the kernel, and the composition of LibTorch operations that it must agree
// with.
#include "core/model/kernels/rms_norm.h"

#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>

#include "core/bench/step_clock.h"
#include "core/model/kernels/dtypes.h"

namespace ciuic::core::kernels {
namespace reference {

RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& weight_D, double epsilon) {
  const at::Tensor x = x_ND.to(accumulate_dtype(x_ND.scalar_type()));
  const at::Tensor rstd = x.square().mean({1}, true).add(epsilon).rsqrt();
  const at::Tensor normed = x.mul(rstd).to(x_ND.scalar_type());
  return {normed.mul(weight_D).to(x_ND.scalar_type()).contiguous(), rstd.squeeze(1)};
}

at::Tensor rms_norm_backward_out(const at::Tensor& dx_ND, const at::Tensor& dy_ND,
                                 const at::Tensor& x_ND, const at::Tensor& rstd_N,
                                 const at::Tensor& weight_D, const at::Tensor& residual_ND) {
  const at::ScalarType dtype = accumulate_dtype(x_ND.scalar_type());
  const at::Tensor rstd = rstd_N.unsqueeze(1);
  const at::Tensor normed = x_ND.to(dtype).mul(rstd);
  const at::Tensor dy = dy_ND.to(dtype);
  const at::Tensor g = dy.mul(weight_D.to(dtype));
  at::Tensor dx = g.sub(normed.mul(g.mul(normed).mean({1}, true))).mul(rstd);
  if (residual_ND.defined()) {
    dx = dx.add(residual_ND);
  }
  dx_ND.copy_(dx);
  return dy.mul(normed.to(x_ND.scalar_type())).sum({0});
}

}  // namespace reference

RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& weight_D, double epsilon) {
  const PartSpan part(Part::Norm);
  return x_ND.is_cpu() ? cpu::rms_norm(x_ND, weight_D, epsilon)
                       : reference::rms_norm(x_ND, weight_D, epsilon);
}

at::Tensor rms_norm_backward_out(const at::Tensor& dx_ND, const at::Tensor& dy_ND,
                                 const at::Tensor& x_ND, const at::Tensor& rstd_N,
                                 const at::Tensor& weight_D, const at::Tensor& residual_ND) {
  const PartSpan part(Part::Norm);
  return x_ND.is_cpu()
             ? cpu::rms_norm_backward_out(dx_ND, dy_ND, x_ND, rstd_N, weight_D, residual_ND)
             : reference::rms_norm_backward_out(dx_ND, dy_ND, x_ND, rstd_N, weight_D, residual_ND);
}

}  // namespace ciuic::core::kernels
