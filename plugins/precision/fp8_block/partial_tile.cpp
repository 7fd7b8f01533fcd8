// SPDX-License-Identifier: MIT
#include "partial_tile.h"

namespace ciuic::plugins::fp8_block {
namespace {

using Tile = void (*)(const float*, int64_t, int64_t, const float*, int64_t, float*);

constexpr int64_t kWidth = 32;

typedef float Wide __attribute__((vector_size(64)));
typedef float Narrow __attribute__((vector_size(32)));

// kRows x (kVectors vectors of type V) in registers.
template <typename V, int kRows, int kVectors>
[[gnu::always_inline]] inline void multiply(const float* a, int64_t row_stride,
                                            int64_t column_stride, const float* panel,
                                            int64_t depth, float* sums) {
  constexpr int64_t kLanes = sizeof(V) / sizeof(float);
  V sum[kRows][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const auto* b = reinterpret_cast<const V*>(panel + k * kWidth);
    const float* column = a + k * column_stride;
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) {
      const float value = column[row * row_stride];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sum[row][v] += value * b[v];
      }
    }
  }
#pragma GCC unroll 14
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<V*>(sums + row * kWidth + v * kLanes) = sum[row][v];
    }
  }
}

// Half a panel at a time in narrow vectors, and at most 6 rows: 12 registers of sums.
template <int kRows>
[[gnu::always_inline]] inline void multiply_narrow(const float* a, int64_t row_stride,
                                                   int64_t column_stride, const float* panel,
                                                   int64_t depth, float* sums) {
  for (int64_t half = 0; half < kWidth; half += 16) {
    multiply<Narrow, kRows, 2>(a, row_stride, column_stride, panel + half, depth, sums + half);
  }
}

#if defined(__x86_64__)
template <int kRows>
__attribute__((target("avx512f"))) void wide_tile(const float* a, int64_t row_stride,
                                                  int64_t column_stride, const float* panel,
                                                  int64_t depth, float* sums) {
  multiply<Wide, kRows, 2>(a, row_stride, column_stride, panel, depth, sums);
}
template <int kRows>
__attribute__((target("avx2,fma"))) void narrow_tile(const float* a, int64_t row_stride,
                                                     int64_t column_stride, const float* panel,
                                                     int64_t depth, float* sums) {
  multiply_narrow<kRows>(a, row_stride, column_stride, panel, depth, sums);
}
#endif
template <int kRows>
void plain_tile(const float* a, int64_t row_stride, int64_t column_stride, const float* panel,
                int64_t depth, float* sums) {
  multiply_narrow<kRows>(a, row_stride, column_stride, panel, depth, sums);
}

// One instance for each number of rows that a last tile can have.
struct Kernel {
  int64_t rows;  // the most at once
  const Tile* tiles;
};
constexpr int64_t kNarrowRows = 6;
#define CIUIC_SIX(tile) nullptr, tile<1>, tile<2>, tile<3>, tile<4>, tile<5>, tile<6>
constexpr Tile kPlain[] = {CIUIC_SIX(plain_tile)};
#if defined(__x86_64__)
constexpr Tile kNarrow[] = {CIUIC_SIX(narrow_tile)};
constexpr Tile kWide[] = {CIUIC_SIX(wide_tile), wide_tile<7>,  wide_tile<8>,
                          wide_tile<9>,         wide_tile<10>, wide_tile<11>,
                          wide_tile<12>,        wide_tile<13>, wide_tile<14>};
#endif

Kernel best_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) {
    return {kTileRows, kWide};
  }
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    return {kNarrowRows, kNarrow};
  }
#endif
  return {kNarrowRows, kPlain};
}

}  // namespace

void partial_tile(const float* a, int64_t row_stride, int64_t column_stride, const float* panel,
                  int64_t rows, int64_t depth, float* sums) {
  static const Kernel kernel = best_kernel();
  for (int64_t row = 0; row < rows; row += kernel.rows) {
    const int64_t count = rows - row < kernel.rows ? rows - row : kernel.rows;
    kernel.tiles[count](a + row * row_stride, row_stride, column_stride, panel, depth,
                        sums + row * kWidth);
  }
}

}  // namespace ciuic::plugins::fp8_block
