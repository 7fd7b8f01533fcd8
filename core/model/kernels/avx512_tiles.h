// SPDX-License-Identifier: MIT
#pragma once

// The inner part of a f32 matrix product in AVX-512: C (+)= A B over one panel of B.
//
// A panel is up to kPanelWidth columns of B over up to kPanelDepth rows, copied so that the loop
// reads it in order; it stays in the first-level cache while tiles of kTileRows rows of A pass by.
// 14 x 2 accumulators, 2 vectors of B and 1 element of A fill the 32 registers. A and C are used
// where they lie.
//
// Why not MKL alone: it leaves AVX-512 unused on AMD processors, which costs half of their speed
// from Zen 5 on. Sources: Goto, van de Geijn, "Anatomy of high-performance matrix multiplication"
// (2008); Van Zee, van de Geijn, "BLIS" (2015).

#include <cstdint>

namespace ciuic::core::kernels::avx512 {

inline constexpr int64_t kTileRows = 14;
inline constexpr int64_t kPanelWidth = 32;
inline constexpr int64_t kPanelDepth = 256;

/// Whether this processor has what the functions below need.
bool is_supported();

/// An element (row, column) lies at data[row * row_stride + column * column_stride].
struct View {
  const float* data;
  int64_t row_stride, column_stride;

  [[nodiscard]] View at(int64_t row, int64_t column) const {
    return {data + row * row_stride + column * column_stride, row_stride, column_stride};
  }
};

/// Copies depth x width of `b` into a panel of depth * kPanelWidth floats, 64-byte aligned; zeros
/// fill it up.
void pack_panel(float* panel, View b, int64_t depth, int64_t width);

/// C [rows, width] (+)= A [rows, depth] panel. Rows of C are `c_stride` apart. The depth is summed
/// in order, so an element's bits do not depend on the rows and columns around it.
void multiply_panel(float* c, int64_t c_stride, View a, const float* panel, int64_t rows,
                    int64_t depth, int64_t width, bool adds);

}  // namespace ciuic::core::kernels::avx512
