// SPDX-License-Identifier: MIT
#pragma once

// Matrix products of the layers: out (+)= a b.
//
// f32 on AMD processors with AVX-512 takes an own kernel (kernels/avx512_tiles.h), bf16 on processors
// with AVX512-BF16 and without AMX another (kernels/bf16_tiles.h), everything else LibTorch's. The
// bits of a result depend neither on the number of threads nor on the rows beside it in own kernels.

#include <ATen/core/Tensor.h>

namespace ciuic::core {

/// a: [M, K], b: [K, N]; one dimension of each contiguous (so transposed views are fine). Dtypes
/// equal, but that f16 and bf16 operands may have an f32 result; LibTorch's product of bf16 is rounded
/// before it becomes f32.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

/// out: [M, N], rows contiguous but maybe apart; overlaps neither a nor b. `adds`: out += a b.
void product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                 bool adds = false);

/// residual + a b
at::Tensor add_product(const at::Tensor& residual, const at::Tensor& a, const at::Tensor& b);

namespace reference {
void product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                 bool adds = false);
}  // namespace reference

}  // namespace ciuic::core
