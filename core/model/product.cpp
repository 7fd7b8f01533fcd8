// SPDX-License-Identifier: MIT
#include "core/model/product.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "core/model/kernels/cpu_product.h"

namespace ciuic::core {

void reference::product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                            bool adds) {
  at::Tensor target = out;
  if (adds) {
    at::addmm_out(target, target, a, b);
  } else {
    at::mm_out(target, a, b);
  }
}

void product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds) {
  if (kernels::has_cpu_product(out, a, b)) {
    kernels::cpu_product_out(out, a, b, adds);
  } else {
    reference::product_out(out, a, b, adds);
  }
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  product_out(out, a, b);
  return out;
}

at::Tensor add_product(const at::Tensor& residual, const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::empty(residual.sizes(), residual.options());
  if (!kernels::has_cpu_product(out, a, b)) {
    return at::addmm_out(out, residual, a, b);
  }
  out.copy_(residual);
  kernels::cpu_product_out(out, a, b, /*adds=*/true);
  return out;
}

}  // namespace ciuic::core
