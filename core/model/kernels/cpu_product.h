// SPDX-License-Identifier: MIT
#pragma once

// A whole f32 product from the tiles of avx512_tiles.h: packing, cache blocks, threads. product.h
// says when it serves.

#include <ATen/core/Tensor.h>

namespace ciuic::core::kernels {

bool has_cpu_product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
void cpu_product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds);

}  // namespace ciuic::core::kernels
