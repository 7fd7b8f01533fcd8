// SPDX-License-Identifier: MIT
//
// out = alpha A B + beta out, as FP8 tensor cores with promotion compute it (DeepSeek-V3,
// arXiv:2412.19437, sec. 3.3.2): over each stretch of 128 in depth the numbers are multiplied and
// summed in fp32; that sum, times the scales of A's tile and B's block, is added to an fp32
// accumulator.
//
//   c[i][j] = (..(0 + p_0 (a_0 b_0)) + p_1 (a_1 b_1)) + ..     p_s: sum over stretch s, k in order
//
// The order is fixed: the same bits in any number of threads and on any processor.
#pragma once

#include "matrix.h"
#include "panels.h"
#include "quantise.h"

namespace ciuic::plugins::fp8_block {

struct Factors {
  float alpha, beta;
};

/// `transposed`: A is a^T, as dy is in the gradient of a weight. `row`: the first row of a that takes
/// part (a^T: all do), as many as out has.
void block_product(const Quantised& a, bool transposed, int64_t row, const Panels& b,
                   const Factors& factors, const Matrix& out, const Parallel& parallel);

}  // namespace ciuic::plugins::fp8_block
