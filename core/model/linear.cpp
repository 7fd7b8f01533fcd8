// SPDX-License-Identifier: MIT
#include "core/model/linear.h"

#include <ATen/ops/empty.h>

#include "core/model/policy_products.h"
#include "core/model/product.h"

namespace ciuic::core {
namespace {

bool is_taken(const Bound& weight, ProductPass pass) {
  return weight.hook != nullptr && weight.hook->takes(pass);
}

void compute(const Bound& weight, ProductPass pass, const at::Tensor& out, const at::Tensor& a,
             bool adds) {
  const ModuleHook& hook = *weight.hook;
  hook.products->compute({pass, hook.module, out, a, weight.value, adds, {}});
}

}  // namespace

at::Tensor linear(const at::Tensor& x_NI, const Bound& weight) {
  at::Tensor out = at::empty({x_NI.size(0), weight.value.size(0)}, x_NI.options());
  linear_out(out, x_NI, weight);
  return out;
}

void linear_out(const at::Tensor& out_NO, const at::Tensor& x_NI, const Bound& weight) {
  if (is_taken(weight, ProductPass::Forward)) {
    compute(weight, ProductPass::Forward, out_NO, x_NI, /*adds=*/false);
  } else {
    product_out(out_NO, x_NI, weight.value.t());
  }
}

at::Tensor add_linear(const at::Tensor& residual_NO, const at::Tensor& x_NI, const Bound& weight) {
  if (!is_taken(weight, ProductPass::Forward)) {
    return add_product(residual_NO, x_NI, weight.value.t());
  }
  at::Tensor out = residual_NO.clone();
  compute(weight, ProductPass::Forward, out, x_NI, /*adds=*/true);
  return out;
}

at::Tensor linear_backward(const at::Tensor& dy_NO, const Bound& weight) {
  at::Tensor dx = at::empty({dy_NO.size(0), weight.value.size(1)}, dy_NO.options());
  linear_backward_out(dx, dy_NO, weight);
  return dx;
}

void linear_backward_out(const at::Tensor& dx_NI, const at::Tensor& dy_NO, const Bound& weight,
                         bool adds) {
  if (is_taken(weight, ProductPass::GradInput)) {
    compute(weight, ProductPass::GradInput, dx_NI, dy_NO, adds);
  } else {
    product_out(dx_NI, dy_NO, weight.value, adds);
  }
}

}  // namespace ciuic::core
