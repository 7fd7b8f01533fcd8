// SPDX-License-Identifier: MIT
#pragma once

// What tiles of f32 and of bf16 share: masks for edges, and a 16 x 16 transpose in registers. Only
// files with AVX-512 functions include it.
#if defined(__x86_64__)

#include <cstdint>
#include <immintrin.h>

// A file is compiled for the base instruction set like all others: these functions alone use more.
#define CIUIC_AVX512 __attribute__((target("avx512f")))
#define CIUIC_AVX512_INLINE __attribute__((target("avx512f"), always_inline)) inline

namespace ciuic::core::kernels::avx512 {

/// First `width` of 16 lanes.
CIUIC_AVX512_INLINE __mmask16 lanes(int64_t width) {
  return width >= 16 ? 0xffff : width <= 0 ? 0 : static_cast<__mmask16>((1u << width) - 1);
}

/// Even or odd pairs of lanes of two vectors.
CIUIC_AVX512_INLINE __m512 low_pairs(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
CIUIC_AVX512_INLINE __m512 high_pairs(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

/// Turns 16 rows of 16 into columns, in registers: after each of the two first steps the wanted
/// elements are neighbours in 2 and 4 lanes, and then whole quarters change places.
CIUIC_AVX512_INLINE void transpose(__m512 (&rows)[16]) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    rows[i] = low_pairs(t[i], t[i + 2]);
    rows[i + 1] = high_pairs(t[i], t[i + 2]);
    rows[i + 2] = low_pairs(t[i + 1], t[i + 3]);
    rows[i + 3] = high_pairs(t[i + 1], t[i + 3]);
  }
  constexpr int kEven = 0x88;  // quarters 0 and 2 of both
  constexpr int kOdd = 0xdd;   // 1 and 3
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(rows[i], rows[4 + i], kEven);
    t[4 + i] = _mm512_shuffle_f32x4(rows[8 + i], rows[12 + i], kEven);
    t[8 + i] = _mm512_shuffle_f32x4(rows[i], rows[4 + i], kOdd);
    t[12 + i] = _mm512_shuffle_f32x4(rows[8 + i], rows[12 + i], kOdd);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_f32x4(t[i], t[4 + i], kEven);
    rows[4 + i] = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], kEven);
    rows[8 + i] = _mm512_shuffle_f32x4(t[i], t[4 + i], kOdd);
    rows[12 + i] = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], kOdd);
  }
}

}  // namespace ciuic::core::kernels::avx512

#endif
