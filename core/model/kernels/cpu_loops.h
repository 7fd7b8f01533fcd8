// SPDX-License-Identifier: MIT
#pragma once

// What the CPU kernels share: dtypes, clones for wider vectors, and an exponential that vectorises.
//
// A kernel is a function template over rows, marked CIUIC_CPU_CLONES, that parallel_rows() calls
// for ranges of rows. It computes in Accumulate<T>: float for float, bf16 and f16, double for double.
// Sums use `#pragma omp simd reduction`, which lets the compiler keep one partial sum per lane: the
// order is fixed by the binary and the processor, never by threads.

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include <ATen/Parallel.h>
#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

// One binary serves old and new processors; the choice is made once, at load. Sanitizers do not
// survive the resolvers, which run before they are set up.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
#define CIUIC_CPU_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CIUIC_CPU_CLONES
#endif

namespace ciuic::core::kernels {

template <typename T>
using Accumulate = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
inline constexpr bool kIsBfloat16 = std::is_same_v<T, c10::BFloat16>;

/// Calls `body` with a value of the C++ type for `dtype`.
template <typename Body>
auto with_dtype(at::ScalarType dtype, Body&& body) {
  switch (dtype) {
    case at::kFloat:
      return body(float{});
    case at::kDouble:
      return body(double{});
    case at::kBFloat16:
      return body(c10::BFloat16{});
    case at::kHalf:
      return body(c10::Half{});
    default:
      TORCH_CHECK(false, "model kernels: got dtype ", dtype, ", expected f32, bf16, f16 or f64");
  }
}

inline bool has_cpu_kernel(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kDouble || dtype == at::kBFloat16 ||
         dtype == at::kHalf;
}

/// Splits rows over the threads so that each gets some 16 thousand elements at least.
template <typename Body>
void parallel_rows(int64_t rows, int64_t elements_per_row, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, elements_per_row));
  at::parallel_for(0, rows, grain, body);
}

/// `value` in T, to nearest even. For bf16 without c10's branch at NaN, which keeps a loop scalar.
template <typename T, typename A>
[[gnu::always_inline]] inline T narrow(A value) {
  if constexpr (kIsBfloat16<T>) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    const uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40U;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return T(static_cast<uint16_t>(is_nan ? quiet : rounded), T::from_bits());
  } else {
    return static_cast<T>(value);
  }
}

/// e^x to about 1 ulp (Cephes' expf: 2^n times a polynomial on [-ln2/2, ln2/2]). Saturates at the
/// ends of the normal range instead of reaching 0 and infinity; NaN stays NaN.
[[gnu::always_inline]] inline float exponential(float x) {
  constexpr float kRound =
      12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * 1.44269504088896341f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  const uint32_t exponent =
      (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound) + 127u) << 23;
  return p * std::bit_cast<float>(exponent);
}
[[gnu::always_inline]] inline double exponential(double x) { return std::exp(x); }

template <typename A>
[[gnu::always_inline]] inline A sigmoid(A x) {
  return A(1) / (A(1) + exponential(-x));
}

}  // namespace ciuic::core::kernels
