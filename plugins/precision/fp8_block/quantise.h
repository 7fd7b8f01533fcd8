// SPDX-License-Identifier: MIT
//
// Numbers into blocks of E4M3 under one fp32 scale each: a number stands for number * scale.
//
//   scale = largest magnitude of the block / 448, or the next power of two above; 1 for a block of
//   zeros. A block that holds NaN or infinity becomes NaN as a whole: what went bad stays visible.
//
// Blocks: 1 x 128 (inputs and gradients, along a row), 128 x 1 (the same for the gradient of the
// weight, along the tokens), 128 x 128 (weights). Those at the edges are cut off.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "matrix.h"
#include "recipe.h"

namespace ciuic::plugins::fp8_block {

struct BlockShape {
  int64_t rows, columns;
};
inline constexpr BlockShape kAlongRows{1, kBlock};
inline constexpr BlockShape kAlongColumns{kBlock, 1};
inline constexpr BlockShape kSquare{kBlock, kBlock};

/// E4M3 numbers as floats, row-major, and the scales of their blocks, row-major.
struct Quantised {
  int64_t rows = 0, columns = 0;
  BlockShape block{};
  std::vector<float> numbers;
  std::vector<float> scales;

  [[nodiscard]] int64_t blocks_down() const { return (rows + block.rows - 1) / block.rows; }
  [[nodiscard]] int64_t blocks_across() const {
    return (columns + block.columns - 1) / block.columns;
  }
  [[nodiscard]] float* row(int64_t r) { return numbers.data() + r * columns; }
  [[nodiscard]] const float* row(int64_t r) const { return numbers.data() + r * columns; }
  [[nodiscard]] const float* scale_row(int64_t block_row) const {
    return scales.data() + block_row * blocks_across();
  }
};

/// Runs a body over [0, count), maybe in threads; `grain`: fewer are not worth one.
using Parallel = std::function<void(int64_t count, int64_t grain,
                                    const std::function<void(int64_t begin, int64_t end)>& body)>;

/// The scale of a block by its largest magnitude, given as bits.
float scale_of(uint32_t largest_bits, ScaleRule rule, float largest_number);

/// Fills `out`, whose memory is used again. `stored`: what the numbers went through before.
void quantise(const Matrix& in, BlockShape block, ScaleRule rule, Stored stored,
              const Parallel& parallel, Quantised& out);

/// From codes and scales that were cast before.
void take_cast(const Matrix& codes, const ciuic_tensor& scales, BlockShape block, Quantised& out);

}  // namespace ciuic::plugins::fp8_block
