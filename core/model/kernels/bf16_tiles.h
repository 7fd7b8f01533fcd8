// SPDX-License-Identifier: MIT
#pragma once

// The inner part of a bf16 matrix product in AVX512-BF16: C (+)= A B over one panel of B.
//
// The instruction multiplies pairs along the depth and adds both products to an f32 element:
// 64 operations, twice those of f32. So a panel holds pairs, up to kPanelWidth columns of B side by
// side, and A is read a pair at a time, from rows that lie in order or from packed tiles. Sums are
// f32 over the whole depth of a call; a bf16 result is rounded once, to nearest even. The
// instruction rounds each step to nearest even and takes subnormal numbers for zero.

#include <cstdint>

namespace ciuic::core::kernels::bf16 {

inline constexpr int64_t kTileRows = 14;
inline constexpr int64_t kPanelWidth = 32;
/// Words of a pair of tile rows in a packed left factor: kTileRows, and two that only align it.
inline constexpr int64_t kTileStride = 16;

/// Whether this processor has what the functions below need, and LibTorch has nothing better for it:
/// with AMX it does.
bool is_supported();

/// Bits of bf16.
using Bits = uint16_t;
/// Two neighbours along the depth; the first is in the low half.
using Pair = uint32_t;

inline int64_t pairs_of(int64_t depth) { return (depth + 1) / 2; }

/// An element (row, column) lies at data[row * row_stride + column * column_stride].
struct View {
  const Bits* data;
  int64_t row_stride, column_stride;

  [[nodiscard]] View at(int64_t row, int64_t column) const {
    return {data + row * row_stride + column * column_stride, row_stride, column_stride};
  }
};

/// Copies depth x width of `b` into a panel of pairs_of(depth) * kPanelWidth pairs, 64-byte aligned;
/// zeros fill it up.
void pack_panel(Pair* panel, View b, int64_t depth, int64_t width);

/// Pairs of a packed left factor.
inline int64_t packed_size(int64_t rows, int64_t depth) {
  return (rows + kTileRows - 1) / kTileRows * pairs_of(depth) * kTileStride;
}
/// Copies rows x depth of `a` into tiles, 64-byte aligned; zeros fill them up.
void pack_tiles(Pair* tiles, View a, int64_t rows, int64_t depth);

/// A left factor as the product reads it.
class Left final {
 public:
  /// Rows whose elements lie in order; a last odd element is read alone.
  static Left in_rows(const Bits* data, int64_t stride, int64_t depth) {
    return {data, stride, 2, kTileRows * stride, depth};
  }
  static Left in_tiles(const Pair* tiles, int64_t depth) {
    const int64_t pairs = pairs_of(depth);
    return {tiles, 2, 2 * kTileStride, 2 * pairs * kTileStride, 2 * pairs};
  }

  const Bits* data;
  int64_t row_stride, pair_stride, tile_stride;  // in elements
  int64_t depth;

 private:
  Left(const void* first, int64_t row, int64_t pair, int64_t tile, int64_t elements)
      : data(static_cast<const Bits*>(first)),
        row_stride(row),
        pair_stride(pair),
        tile_stride(tile),
        depth(elements) {}
};

/// C [rows, width] (+)= A [rows, depth] panel, in f32 or bf16. Rows of C are `c_stride` apart. The
/// depth is summed in order, so an element's bits do not depend on the rows and columns around it.
void multiply_panel(float* c, int64_t c_stride, const Left& a, const Pair* panel, int64_t rows,
                    int64_t width, bool adds);
void multiply_panel(Bits* c, int64_t c_stride, const Left& a, const Pair* panel, int64_t rows,
                    int64_t width, bool adds);

}  // namespace ciuic::core::kernels::bf16
