// SPDX-License-Identifier: MIT
#pragma once

// bf16 in AVX-512 registers. Only files with AVX-512 functions include it.

#include "core/model/kernels/avx512_registers.h"

#if defined(__x86_64__)

#define CIUIC_BF16_TARGET "avx512f,avx512bw,avx512vl,avx512bf16"
#define CIUIC_BF16 __attribute__((target(CIUIC_BF16_TARGET)))
#define CIUIC_BF16_INLINE __attribute__((target(CIUIC_BF16_TARGET), always_inline)) inline

namespace ciuic::core::kernels::bf16 {

/// 16 elements, zeros where the mask is.
CIUIC_BF16_INLINE __m256i load(__mmask16 mask, const uint16_t* from) {
  return _mm256_maskz_loadu_epi16(mask, from);
}

CIUIC_BF16_INLINE __m512 widened(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/// To nearest even; subnormal numbers become zero.
CIUIC_BF16_INLINE __m256i narrowed(__m512 values) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values));
}

/// Pairs of neighbouring rows: the first in the low halves.
CIUIC_BF16_INLINE __m512i paired(__m256i first, __m256i second) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(first),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
}

}  // namespace ciuic::core::kernels::bf16

#endif
