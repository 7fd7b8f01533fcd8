// SPDX-License-Identifier: MIT
#include "core/model/kernels/bf16_tiles.h"

#include <algorithm>
#include <cstring>

#include "core/model/kernels/bf16_registers.h"

namespace ciuic::core::kernels::bf16 {

#if defined(__x86_64__)
namespace {

using avx512::lanes;

CIUIC_BF16_INLINE __m512bh broadcast(Pair pair) {
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pair)));
}

CIUIC_BF16_INLINE __m512bh load_pairs(const Pair* from) {
  return reinterpret_cast<__m512bh>(_mm512_load_si512(from));
}

CIUIC_BF16_INLINE void store(float* c, __m512 sum, __mmask16 mask, bool adds) {
  if (adds) {
    sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, c));
  }
  _mm512_mask_storeu_ps(c, mask, sum);
}

CIUIC_BF16_INLINE void store(Bits* c, __m512 sum, __mmask16 mask, bool adds) {
  if (adds) {
    sum = _mm512_add_ps(sum, widened(load(mask, c)));
  }
  _mm256_mask_storeu_epi16(c, mask, narrowed(sum));
}

template <int kRows, typename C>
CIUIC_BF16_INLINE void multiply_tile(C* c, int64_t c_stride, const Left& a, const Bits* tile,
                                     const Pair* panel, __mmask16 left, __mmask16 right,
                                     bool adds) {
  __m512 sum[kRows][2];
  for (int row = 0; row < kRows; ++row) {
    __builtin_prefetch(c + row * c_stride, /*for writing*/ 1);
    sum[row][0] = _mm512_setzero_ps();
    sum[row][1] = _mm512_setzero_ps();
  }
  const int64_t row_stride = a.row_stride;
  const int64_t pair_stride = a.pair_stride;
  const Pair* const end = panel + a.depth / 2 * kPanelWidth;
  const Bits* column = tile;
  for (; panel != end; panel += kPanelWidth, column += pair_stride) {
    const __m512bh b0 = load_pairs(panel);
    const __m512bh b1 = load_pairs(panel + 16);
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) {
      Pair pair;
      std::memcpy(&pair, column + row * row_stride, sizeof(pair));
      const __m512bh value = broadcast(pair);
      sum[row][0] = _mm512_dpbf16_ps(sum[row][0], value, b0);
      sum[row][1] = _mm512_dpbf16_ps(sum[row][1], value, b1);
    }
  }
  if (a.depth % 2 != 0) {
    const __m512bh b0 = load_pairs(panel);
    const __m512bh b1 = load_pairs(panel + 16);
    for (int row = 0; row < kRows; ++row) {
      const __m512bh value = broadcast(column[row * row_stride]);
      sum[row][0] = _mm512_dpbf16_ps(sum[row][0], value, b0);
      sum[row][1] = _mm512_dpbf16_ps(sum[row][1], value, b1);
    }
  }
  for (int row = 0; row < kRows; ++row) {
    store(c + row * c_stride, sum[row][0], left, adds);
    store(c + row * c_stride + 16, sum[row][1], right, adds);
  }
}

// A table instead of a switch: one instance for each number of rows that a last tile can have.
template <typename C>
using Tile = void (*)(C*, int64_t, const Left&, const Bits*, const Pair*, __mmask16, __mmask16,
                      bool);
template <int kRows, typename C>
CIUIC_BF16 void tile(C* c, int64_t c_stride, const Left& a, const Bits* first, const Pair* panel,
                     __mmask16 left, __mmask16 right, bool adds) {
  multiply_tile<kRows>(c, c_stride, a, first, panel, left, right, adds);
}
template <typename C>
constexpr Tile<C> kTiles[kTileRows + 1] = {nullptr,     tile<1, C>,  tile<2, C>,  tile<3, C>,
                                           tile<4, C>,  tile<5, C>,  tile<6, C>,  tile<7, C>,
                                           tile<8, C>,  tile<9, C>,  tile<10, C>, tile<11, C>,
                                           tile<12, C>, tile<13, C>, tile<14, C>};

template <typename C>
CIUIC_BF16 void multiply(C* c, int64_t c_stride, const Left& a, const Pair* panel, int64_t rows,
                         int64_t width, bool adds) {
  const __mmask16 left = lanes(width);
  const __mmask16 right = lanes(width - 16);
  for (int64_t row = 0; row < rows; row += kTileRows) {
    const int64_t count = std::min(kTileRows, rows - row);
    kTiles<C>[count](c + row * c_stride, c_stride, a, a.data + row / kTileRows * a.tile_stride,
                     panel, left, right, adds);
  }
}

}  // namespace

bool is_supported() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bf16") != 0 &&
         __builtin_cpu_supports("amx-bf16") == 0;
}

void multiply_panel(float* c, int64_t c_stride, const Left& a, const Pair* panel, int64_t rows,
                    int64_t width, bool adds) {
  multiply(c, c_stride, a, panel, rows, width, adds);
}
void multiply_panel(Bits* c, int64_t c_stride, const Left& a, const Pair* panel, int64_t rows,
                    int64_t width, bool adds) {
  multiply(c, c_stride, a, panel, rows, width, adds);
}

#else

bool is_supported() { return false; }
void multiply_panel(float*, int64_t, const Left&, const Pair*, int64_t, int64_t, bool) {}
void multiply_panel(Bits*, int64_t, const Left&, const Pair*, int64_t, int64_t, bool) {}

#endif

}  // namespace ciuic::core::kernels::bf16
