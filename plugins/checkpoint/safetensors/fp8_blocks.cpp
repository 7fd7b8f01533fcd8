// SPDX-License-Identifier: MIT
#include "fp8_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "number_formats.h"

namespace ciuic::plugins::safetensors {
namespace {

/// The largest magnitude in a block; not finite when any value is not.
float largest(const float* values, int64_t stride, int64_t rows, int64_t columns) {
  float amax = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const float magnitude = std::fabs(values[r * stride + c]);
      amax = magnitude <= amax ? amax : magnitude;  // a NaN is taken over, and nothing after it
      if (!(amax <= std::numeric_limits<float>::max())) {
        return amax;
      }
    }
  }
  return amax;
}

}  // namespace

void dequantise(const Matrix& matrix, int64_t begin, int64_t count, const uint8_t* codes,
                const std::function<const float*(int64_t)>& scales, float* values) {
  int64_t known_row = -1;
  const float* row_scales = nullptr;
  for (int64_t done = 0; done < count;) {
    const int64_t row = (begin + done) / matrix.columns;
    const int64_t column = (begin + done) % matrix.columns;
    if (row / kBlock != known_row) {
      known_row = row / kBlock;
      row_scales = scales(known_row);
    }
    // To the end of the block, of the row, or of what is wanted.
    const int64_t run = std::min({kBlock - column % kBlock, matrix.columns - column, count - done});
    const float scale = row_scales[column / kBlock];
    for (int64_t i = done; i < done + run; ++i) {
      values[i] = kE4m3Values[codes[i]] * scale;
    }
    done += run;
  }
}

bool quantise_block_row(const float* values, int64_t rows, int64_t columns, uint8_t* codes,
                        float* scales) {
  for (int64_t first = 0; first < columns; first += kBlock) {
    const int64_t width = std::min(kBlock, columns - first);
    const float amax = largest(values + first, columns, rows, width);
    if (!std::isfinite(amax)) {
      return false;
    }
    const float scale =
        amax == 0 ? 1.0F : std::max(amax / kLargestE4m3, std::numeric_limits<float>::min());
    scales[first / kBlock] = scale;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = r * columns + first; i < r * columns + first + width; ++i) {
        codes[i] = to_e4m3(values[i] / scale);
      }
    }
  }
  return true;
}

}  // namespace ciuic::plugins::safetensors
