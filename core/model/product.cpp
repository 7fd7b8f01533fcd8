// SPDX-License-Identifier: MIT
#include "core/model/product.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "core/model/kernels/cpu_bf16_product.h"
#include "core/model/kernels/cpu_product.h"

namespace ciuic::core {

namespace {

// LibTorch's f16 product on CPUs without f16 instructions runs at a few GFLOP/s: in f32 it is
// exact but for the order of the sum, and rounded once, which is what tensor cores do.
bool needs_f32(const at::Tensor& a) { return a.is_cpu() && a.scalar_type() == at::kHalf; }

bool has_own_product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  return kernels::has_cpu_product(out, a, b) || kernels::has_cpu_bf16_product(out, a, b);
}

void own_product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds) {
  a.scalar_type() == at::kBFloat16 ? kernels::cpu_bf16_product_out(out, a, b, adds)
                                   : kernels::cpu_product_out(out, a, b, adds);
}

void product_in_f32_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                        bool adds) {
  const at::Tensor wide_a = a.to(at::kFloat);
  const at::Tensor wide_b = b.to(at::kFloat);
  if (out.scalar_type() == at::kFloat) {
    product_out(out, wide_a, wide_b, adds);
    return;
  }
  const at::Tensor sum = adds ? out.to(at::kFloat) : at::empty(out.sizes(), wide_a.options());
  product_out(sum, wide_a, wide_b, adds);
  out.copy_(sum);
}

}  // namespace

void reference::product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                            bool adds) {
  at::Tensor target = out;
  if (a.scalar_type() != out.scalar_type()) {  // LibTorch's results have the factors' type
    const at::Tensor rounded = at::mm(a, b);
    adds ? target.add_(rounded) : target.copy_(rounded);
  } else if (adds) {
    at::addmm_out(target, target, a, b);
  } else {
    at::mm_out(target, a, b);
  }
}

void product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds) {
  if (needs_f32(a)) {
    product_in_f32_out(out, a, b, adds);
  } else if (has_own_product(out, a, b)) {
    own_product_out(out, a, b, adds);
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
  if (needs_f32(a)) {
    out.copy_(residual);
    product_in_f32_out(out, a, b, /*adds=*/true);
    return out;
  }
  if (!has_own_product(out, a, b)) {
    return at::addmm_out(out, residual, a, b);
  }
  out.copy_(residual);
  own_product_out(out, a, b, /*adds=*/true);
  return out;
}

}  // namespace ciuic::core
