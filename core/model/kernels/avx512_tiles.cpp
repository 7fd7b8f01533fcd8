// SPDX-License-Identifier: MIT
#include "core/model/kernels/avx512_tiles.h"

#include <algorithm>

#include "core/model/kernels/avx512_registers.h"

namespace ciuic::core::kernels::avx512 {

#if defined(__x86_64__)
namespace {

template <int kRows>
CIUIC_AVX512_INLINE void multiply_tile(float* c, int64_t c_stride, View a, const float* panel,
                                       int64_t depth, __mmask16 left, __mmask16 right, bool adds) {
  __m512 sum[kRows][2];
  for (int row = 0; row < kRows; ++row) {
    sum[row][0] = _mm512_setzero_ps();
    sum[row][1] = _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < depth; ++k) {
    const __m512 b0 = _mm512_load_ps(panel + k * kPanelWidth);
    const __m512 b1 = _mm512_load_ps(panel + k * kPanelWidth + 16);
    const float* column = a.data + k * a.column_stride;
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) {
      const __m512 value = _mm512_set1_ps(column[row * a.row_stride]);
      sum[row][0] = _mm512_fmadd_ps(value, b0, sum[row][0]);
      sum[row][1] = _mm512_fmadd_ps(value, b1, sum[row][1]);
    }
  }
  for (int row = 0; row < kRows; ++row) {
    float* target = c + row * c_stride;
    if (adds) {
      sum[row][0] = _mm512_add_ps(sum[row][0], _mm512_maskz_loadu_ps(left, target));
      sum[row][1] = _mm512_add_ps(sum[row][1], _mm512_maskz_loadu_ps(right, target + 16));
    }
    _mm512_mask_storeu_ps(target, left, sum[row][0]);
    _mm512_mask_storeu_ps(target + 16, right, sum[row][1]);
  }
}

// A table instead of a switch: one instance for each number of rows that a last tile can have.
using Tile = void (*)(float*, int64_t, View, const float*, int64_t, __mmask16, __mmask16, bool);
template <int kRows>
CIUIC_AVX512 void tile(float* c, int64_t c_stride, View a, const float* panel, int64_t depth,
                       __mmask16 left, __mmask16 right, bool adds) {
  multiply_tile<kRows>(c, c_stride, a, panel, depth, left, right, adds);
}
constexpr Tile kTiles[kTileRows + 1] = {nullptr,  tile<1>,  tile<2>,  tile<3>,  tile<4>,
                                        tile<5>,  tile<6>,  tile<7>,  tile<8>,  tile<9>,
                                        tile<10>, tile<11>, tile<12>, tile<13>, tile<14>};

// 16 columns of a panel from columns that lie in order (b.row_stride == 1); zeros beyond `width`.
CIUIC_AVX512 void pack_columns(float* panel, View b, int64_t depth, int64_t width) {
  for (int64_t k = 0; k < depth; k += 16) {
    const int64_t count = std::min<int64_t>(16, depth - k);
    __m512 block[16];
    for (int n = 0; n < 16; ++n) {
      const __mmask16 present = n < width ? lanes(count) : 0;
      block[n] = _mm512_maskz_loadu_ps(present, present != 0 ? b.at(k, n).data : b.data);
    }
    transpose(block);
    for (int i = 0; i < count; ++i) {
      _mm512_store_ps(panel + (k + i) * kPanelWidth, block[i]);
    }
  }
}

}  // namespace

bool is_supported() { return __builtin_cpu_supports("avx512f") != 0; }

CIUIC_AVX512 void multiply_panel(float* c, int64_t c_stride, View a, const float* panel,
                                 int64_t rows, int64_t depth, int64_t width, bool adds) {
  const __mmask16 left = lanes(width);
  const __mmask16 right = lanes(width - 16);
  for (int64_t row = 0; row < rows; row += kTileRows) {
    const int64_t count = std::min(kTileRows, rows - row);
    kTiles[count](c + row * c_stride, c_stride, a.at(row, 0), panel, depth, left, right, adds);
  }
}

CIUIC_AVX512 void pack_panel(float* panel, View b, int64_t depth, int64_t width) {
  const __mmask16 left = lanes(width);
  const __mmask16 right = lanes(width - 16);
  if (b.column_stride == 1) {
    for (int64_t k = 0; k < depth; ++k) {
      const float* row = b.data + k * b.row_stride;
      _mm512_store_ps(panel + k * kPanelWidth, _mm512_maskz_loadu_ps(left, row));
      _mm512_store_ps(panel + k * kPanelWidth + 16, _mm512_maskz_loadu_ps(right, row + 16));
    }
    return;
  }
  if (b.row_stride == 1) {
    pack_columns(panel, b, depth, width);
    pack_columns(panel + 16, b.at(0, std::min<int64_t>(16, width - 1)), depth, width - 16);
    return;
  }
  for (int64_t n = 0; n < width; ++n) {
    const float* column = b.data + n * b.column_stride;
    for (int64_t k = 0; k < depth; ++k) {
      panel[k * kPanelWidth + n] = column[k * b.row_stride];
    }
  }
  for (int64_t n = width; n < kPanelWidth; ++n) {
    for (int64_t k = 0; k < depth; ++k) {
      panel[k * kPanelWidth + n] = 0;
    }
  }
}

#else

bool is_supported() { return false; }
void pack_panel(float*, View, int64_t, int64_t) {}
void multiply_panel(float*, int64_t, View, const float*, int64_t, int64_t, int64_t, bool) {}

#endif

}  // namespace ciuic::core::kernels::avx512
