// SPDX-License-Identifier: MIT
// Products and sums into gradient views.
#include "core/model/gradient.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace ciuic::core {

void accumulate_product(const Bound& parameter, const at::Tensor& dy_NO, const at::Tensor& x_NI) {
  if (!parameter.grad.defined()) {
    return;
  }
  at::Tensor grad = parameter.grad;
  const at::Tensor dy_ON = dy_NO.t();
  if (grad.scalar_type() != dy_NO.scalar_type()) {
    accumulate(parameter, at::mm(dy_ON, x_NI));  // no CPU product of bf16 has an f32 result
  } else if (parameter.overwrite) {
    at::mm_out(grad, dy_ON, x_NI);
  } else {
    at::addmm_out(grad, grad, dy_ON, x_NI);
  }
}

void accumulate(const Bound& parameter, const at::Tensor& gradient) {
  if (!parameter.grad.defined()) {
    return;
  }
  if (parameter.overwrite) {
    parameter.grad.copy_(gradient);
  } else {
    parameter.grad.add_(gradient);
  }
}

void accumulate_nothing(const Bound& parameter) {
  if (parameter.grad.defined() && parameter.overwrite) {
    parameter.grad.zero_();
  }
}

}  // namespace ciuic::core
