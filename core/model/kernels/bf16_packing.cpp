// SPDX-License-Identifier: MIT
// Packing of bf16 factors into pairs along the depth.
//
// Where the depth lies in order in memory, pairs are 32-bit words already, and blocks of 16 x 16 of
// them are transposed. Where it lies across, two rows are put together.
#include <algorithm>

#include "core/model/kernels/bf16_registers.h"
#include "core/model/kernels/bf16_tiles.h"

namespace ciuic::core::kernels::bf16 {

#if defined(__x86_64__)
namespace {

using avx512::lanes;

// Up to 16 neighbouring pairs of depth, of one line; the last may be half.
CIUIC_BF16_INLINE __m512 load_line(const Bits* line, int64_t depth) {
  const auto mask = depth >= 32 ? ~__mmask32{0} : static_cast<__mmask32>((1ULL << depth) - 1);
  return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask, line));
}

// target[pair * stride + line] = pairs of 16 lines at most, whose depth lies in order; zeros beyond
// `count`.
CIUIC_BF16 void transpose_lines(Pair* target, int64_t stride, const Bits* lines,
                                int64_t line_stride, int64_t depth, int64_t count) {
  for (int64_t first = 0; first < depth; first += 32) {
    const int64_t rest = std::min<int64_t>(32, depth - first);
    __m512 block[16];
    for (int line = 0; line < 16; ++line) {
      block[line] =
          line < count ? load_line(lines + line * line_stride + first, rest) : _mm512_setzero_ps();
    }
    avx512::transpose(block);
    Pair* out = target + first / 2 * stride;
    for (int pair = 0; pair < pairs_of(rest); ++pair) {
      _mm512_store_ps(out + pair * stride, block[pair]);
    }
  }
}

// Words of 16 lines that lie side by side, from two rows of depth.
CIUIC_BF16_INLINE void pair_rows(Pair* target, __mmask16 mask, const Bits* first,
                                 const Bits* second) {
  const __m256i high = second != nullptr ? load(mask, second) : _mm256_setzero_si256();
  _mm512_store_si512(target, paired(load(mask, first), high));
}

// Rows far apart are no stream that the processor would see coming.
constexpr int64_t kAhead = 24;
CIUIC_BF16_INLINE void fetch(const Bits* row) {
  _mm_prefetch(reinterpret_cast<const char*>(row), _MM_HINT_T0);
}

// A panel from rows of B that lie in order: each is read once.
CIUIC_BF16 void pair_panel(Pair* panel, const Bits* b, int64_t row_stride, int64_t depth,
                           int64_t width) {
  const __mmask16 left = lanes(width);
  const __mmask16 right = lanes(width - 16);
  for (int64_t k = 0; k < depth; k += 2, panel += kPanelWidth) {
    const Bits* first = b + k * row_stride;
    const Bits* second = k + 1 < depth ? first + row_stride : nullptr;
    fetch(first + kAhead * row_stride);
    fetch(first + (kAhead + 1) * row_stride);
    pair_rows(panel, left, first, second);
    pair_rows(panel + 16, right, first + 16, second != nullptr ? second + 16 : nullptr);
  }
}

// A tile from columns of A that lie in order. All tiles in one walk would read each line of memory
// once, but writes that far apart fall into the same few sets of the cache: slower by half.
CIUIC_BF16 void pair_tile(Pair* tile, const Bits* a, int64_t column_stride, int64_t rows,
                          int64_t depth) {
  const __mmask16 mask = lanes(rows);
  for (int64_t k = 0; k < depth; k += 2, tile += kTileStride) {
    const Bits* first = a + k * column_stride;
    fetch(first + kAhead * column_stride);
    fetch(first + (kAhead + 1) * column_stride);
    pair_rows(tile, mask, first, k + 1 < depth ? first + column_stride : nullptr);
  }
}

// The same from anywhere.
void gather_lines(Pair* target, int64_t stride, const Bits* data, int64_t depth_stride,
                  int64_t line_stride, int64_t depth, int64_t count) {
  for (int64_t k = 0; k < depth; k += 2) {
    for (int64_t line = 0; line < 16; ++line) {
      const Bits* first = data + k * depth_stride + line * line_stride;
      const Pair low = line < count ? *first : 0;
      const Pair high = line < count && k + 1 < depth ? first[depth_stride] : 0;
      target[k / 2 * stride + line] = low | high << 16;
    }
  }
}

// 16 lines at most as one column of words per pair.
void pack_lines(Pair* target, int64_t stride, const Bits* data, int64_t depth_stride,
                int64_t line_stride, int64_t depth, int64_t count) {
  if (depth_stride == 1) {
    transpose_lines(target, stride, data, line_stride, depth, count);
  } else {
    gather_lines(target, stride, data, depth_stride, line_stride, depth, count);
  }
}

}  // namespace

void pack_panel(Pair* panel, View b, int64_t depth, int64_t width) {
  if (b.column_stride == 1) {
    pair_panel(panel, b.data, b.row_stride, depth, width);
    return;
  }
  for (int64_t half = 0; half < kPanelWidth; half += 16) {
    const int64_t count = std::clamp<int64_t>(width - half, 0, 16);
    const Bits* first = count > 0 ? b.at(0, half).data : b.data;
    pack_lines(panel + half, kPanelWidth, first, b.row_stride, b.column_stride, depth, count);
  }
}

void pack_tiles(Pair* tiles, View a, int64_t rows, int64_t depth) {
  const int64_t tile_size = pairs_of(depth) * kTileStride;
  for (int64_t row = 0; row < rows; row += kTileRows, tiles += tile_size) {
    const Bits* first = a.at(row, 0).data;
    const int64_t count = std::min(kTileRows, rows - row);
    if (a.row_stride == 1) {
      pair_tile(tiles, first, a.column_stride, count, depth);
    } else {
      pack_lines(tiles, kTileStride, first, a.column_stride, a.row_stride, depth, count);
    }
  }
}

#else

void pack_panel(Pair*, View, int64_t, int64_t) {}
void pack_tiles(Pair*, View, int64_t, int64_t) {}

#endif

}  // namespace ciuic::core::kernels::bf16
