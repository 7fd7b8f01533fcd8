// SPDX-License-Identifier: MIT
//
// DeepSeek's FP8 weights: a matrix [rows, columns] of e4m3fn codes and one fp32 scale for each block
// of 128 x 128, those at the edges cut off. value = code * scale.
//
// Source: DeepSeek-V3 technical report, arXiv:2412.19437, section 3.3; README_WEIGHTS.md of the
// published files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ciuic::plugins::safetensors {

inline constexpr int64_t kBlock = 128;
inline constexpr const char* kScaleEnding = "_scale_inv";

struct Matrix {
  int64_t rows = 0, columns = 0;
  [[nodiscard]] int64_t block_rows() const { return (rows + kBlock - 1) / kBlock; }
  [[nodiscard]] int64_t block_columns() const { return (columns + kBlock - 1) / kBlock; }
};

/// codes[i] is element `begin` + i in row-major order. `scales(r)` gives the scales of block row r,
/// block_columns() of them, valid until the next call; each row of blocks is asked for once in a
/// row.
void dequantise(const Matrix& matrix, int64_t begin, int64_t count, const uint8_t* codes,
                const std::function<const float*(int64_t block_row)>& scales, float* values);

/// One row of blocks: `rows` x `columns` values, rows <= 128. Writes a code each and a scale per
/// block. The scale is amax / 448, 1 for a block of zeros, and never below the smallest normal
/// number, where it would have no bits left. False when a value is not finite.
[[nodiscard]] bool quantise_block_row(const float* values, int64_t rows, int64_t columns,
                                      uint8_t* codes, float* scales);

}  // namespace ciuic::plugins::safetensors
