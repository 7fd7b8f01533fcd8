// SPDX-License-Identifier: MIT
#include "block_product.h"

#include <algorithm>

#include "partial_tile.h"
#include "precision/tile_rounding.h"

namespace ciuic::plugins::fp8_block {
namespace {

constexpr int64_t kBlockRows = 8 * kTileRows;  // of out: a piece of work and its accumulators
constexpr int64_t kSerial = 1 << 16;           // multiplications for a thread

// c[0..32) += sums * (a * b[0..32)), each step rounded to fp32.
void promote(const float* __restrict sums, float a, const float* __restrict b,
             float* __restrict c) {
  for (int64_t j = 0; j < kPanelWidth; ++j) {
    c[j] += sums[j] * (a * b[j]);
  }
}

struct Left {
  const Quantised& q;
  bool transposed;
  int64_t first;

  [[nodiscard]] const float* at(int64_t i, int64_t k) const {
    return transposed ? q.row(k) + i : q.row(first + i) + k;
  }
  [[nodiscard]] int64_t row_stride() const { return transposed ? 1 : q.columns; }
  [[nodiscard]] int64_t column_stride() const { return transposed ? q.columns : 1; }
  [[nodiscard]] float scale(int64_t i, int64_t stretch) const {
    return transposed ? q.scale_row(stretch)[i] : q.scale_row(first + i)[stretch];
  }
};

struct alignas(64) Scratch {
  float panel[kBlock * kPanelWidth];
  float sums[kTileRows * kPanelWidth];
  float c[kBlockRows * kPanelWidth];
};

// Rows [i0, i0 + rows) of one panel of out, in scratch.c.
void multiply_piece(const Left& a, const Panels& b, int64_t panel, int64_t i0, int64_t rows,
                    Scratch& scratch) {
  std::fill_n(scratch.c, rows * kPanelWidth, 0.0F);
  for (int64_t s = 0; s < b.stretches(); ++s) {
    const int64_t depth = b.depth_of(s);
    precision::decode_e4m3(depth * kPanelWidth, b.panel(s, panel), scratch.panel);
    for (int64_t i = 0; i < rows; i += kTileRows) {
      const int64_t count = std::min(kTileRows, rows - i);
      partial_tile(a.at(i0 + i, s * kBlock), a.row_stride(), a.column_stride(), scratch.panel,
                   count, depth, scratch.sums);
      for (int64_t r = 0; r < count; ++r) {
        promote(scratch.sums + r * kPanelWidth, a.scale(i0 + i + r, s), b.scale(s, panel),
                scratch.c + (i + r) * kPanelWidth);
      }
    }
  }
}

void write_piece(const Matrix& out, int64_t panel, int64_t i0, int64_t rows, const Factors& factors,
                 Scratch& scratch) {
  const int64_t column = panel * kPanelWidth;
  Matrix piece = out;
  piece.data += column * dtype_bytes(out.dtype);
  piece.columns = std::min(kPanelWidth, out.columns - column);
  float old[kPanelWidth];
  for (int64_t i = 0; i < rows; ++i) {
    float* c = scratch.c + i * kPanelWidth;
    for (int64_t j = 0; factors.alpha != 1 && j < kPanelWidth; ++j) {
      c[j] *= factors.alpha;
    }
    piece.write(i0 + i, c, factors.beta, old);
  }
}

}  // namespace

void block_product(const Quantised& a, bool transposed, int64_t row, const Panels& b,
                   const Factors& factors, const Matrix& out, const Parallel& parallel) {
  const Left left{a, transposed, row};
  const int64_t blocks = (out.rows + kBlockRows - 1) / kBlockRows;
  const int64_t work = std::max<int64_t>(1, kBlockRows * kPanelWidth * b.depth);
  parallel(blocks * b.panels(), std::max<int64_t>(1, kSerial / work),
           [&](int64_t begin, int64_t end) {
             Scratch scratch;
             for (int64_t piece = begin; piece < end; ++piece) {
               const int64_t i0 = piece % blocks * kBlockRows;
               const int64_t rows = std::min(kBlockRows, out.rows - i0);
               multiply_piece(left, b, piece / blocks, i0, rows, scratch);
               write_piece(out, piece / blocks, i0, rows, factors, scratch);
             }
           });
}

}  // namespace ciuic::plugins::fp8_block
