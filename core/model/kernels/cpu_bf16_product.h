// SPDX-License-Identifier: MIT
#pragma once

// A whole bf16 product from the tiles of bf16_tiles.h: packing, cache blocks, threads. product.h
// says when it serves.

#include <ATen/core/Tensor.h>

namespace ciuic::core::kernels {

/// Whether this processor runs it at all.
bool has_cpu_bf16_products();
/// bf16 factors with any strides; out: f32 or bf16.
bool has_cpu_bf16_product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
void cpu_bf16_product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                          bool adds);

}  // namespace ciuic::core::kernels
