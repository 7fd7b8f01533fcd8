// SPDX-License-Identifier: MIT
//
// Loops for the compiler to vectorise, a copy for each vector width, chosen when the library is
// loaded. No contraction: a copy with fused instructions gives the same bits.
#include "precision/tile_rounding.h"

#include <algorithm>
#include <bit>
#include <limits>

// Sanitizers run before the resolvers that choose a copy: they get the plain one.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CIUIC_ROUNDING_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CIUIC_ROUNDING_CLONES
#endif

namespace ciuic::plugins::precision {
namespace {

constexpr uint32_t kMagnitude = 0x7FFFFFFF;
constexpr uint32_t kInfinity = 0x7F800000;

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

// Nearest number of a format with `kMantissa` bits whose normal numbers begin at 2^kSmallest. Adding
// 1.5 * 2^23 steps of the number's binade leaves no bits below a step, rounded by the addition
// itself. Infinity and NaN stay.
template <int kMantissa, int kSmallest>
[[gnu::always_inline]] inline float rounded(float x) {
  const uint32_t binade =
      std::max(bits_of(x) & kInfinity, static_cast<uint32_t>(127 + kSmallest) << 23);
  const float anchor = float_of(binade + (static_cast<uint32_t>(23 - kMantissa) << 23)) * 1.5F;
  const float magnitude = float_of(bits_of(x) & kMagnitude);
  const float nearest = (magnitude + anchor) - anchor;
  return float_of(bits_of(nearest) | (bits_of(x) & ~kMagnitude));
}
[[gnu::always_inline]] inline float rounded_to_e4m3(float x) { return rounded<3, -6>(x); }
[[gnu::always_inline]] inline float rounded_to_e5m6(float x) { return rounded<6, -14>(x); }

}  // namespace

CIUIC_ROUNDING_CLONES void widen_bf16(int64_t count, const uint16_t* __restrict in,
                                      float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = float_of(uint32_t{in[i]} << 16);
  }
}

CIUIC_ROUNDING_CLONES void widen_f16(int64_t count, const uint16_t* __restrict in,
                                     float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t sign = uint32_t{in[i] & 0x8000U} << 16;
    const uint32_t magnitude = in[i] & 0x7FFFU;
    const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24F;
    const uint32_t normal = (magnitude << 13) + ((127U - 15U) << 23);
    const uint32_t special = (magnitude << 13) | kInfinity;
    const uint32_t wide = magnitude >= 0x7C00U  ? special
                          : magnitude < 0x0400U ? bits_of(subnormal)
                                                : normal;
    out[i] = float_of(wide | sign);
  }
}

CIUIC_ROUNDING_CLONES void narrow_to_bf16(int64_t count, const float* __restrict in,
                                          uint16_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = bits_of(in[i]);
    const uint32_t nearest = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x7FU;
    out[i] = static_cast<uint16_t>((bits & kMagnitude) > kInfinity ? quiet : nearest);
  }
}

CIUIC_ROUNDING_CLONES void narrow_to_f16(int64_t count, const float* __restrict in,
                                         uint16_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = bits_of(in[i]);
    const uint32_t magnitude = bits & kMagnitude;
    const uint32_t normal =
        (magnitude + 0xFFFU + ((magnitude >> 13) & 1U) - ((127U - 15U) << 23)) >> 13;
    // Below 2^-14: adding 0.5 leaves the nearest multiple of 2^-24 in the low bits.
    const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F);
    const uint32_t nan = 0x7FFFU;
    const uint32_t code = magnitude > kInfinity              ? nan
                          : magnitude >= bits_of(65520.0F)   ? 0x7C00U
                          : magnitude < ((127U - 14U) << 23) ? subnormal
                                                             : normal;
    out[i] = static_cast<uint16_t>(code | (bits >> 16 & 0x8000U));
  }
}

CIUIC_ROUNDING_CLONES uint32_t largest_bits(int64_t count, const float* x) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, bits_of(x[i]) & kMagnitude);
  }
  return largest;
}

CIUIC_ROUNDING_CLONES void raise_to_largest(int64_t count, const float* __restrict x,
                                            uint32_t* __restrict largest) {
  for (int64_t i = 0; i < count; ++i) {
    largest[i] = std::max(largest[i], bits_of(x[i]) & kMagnitude);
  }
}

CIUIC_ROUNDING_CLONES void round_to_e4m3(int64_t count, float scale, float* x) {
  for (int64_t i = 0; i < count; ++i) {
    x[i] = rounded_to_e4m3(x[i] / scale);
  }
}

CIUIC_ROUNDING_CLONES void round_to_e4m3(int64_t count, const float* __restrict scales,
                                         float* __restrict x) {
  for (int64_t i = 0; i < count; ++i) {
    x[i] = rounded_to_e4m3(x[i] / scales[i]);
  }
}

CIUIC_ROUNDING_CLONES void through_e5m6(int64_t count, float scale, float* x) {
  for (int64_t i = 0; i < count; ++i) {
    x[i] = rounded_to_e5m6(x[i] / scale) * scale;
  }
}

CIUIC_ROUNDING_CLONES void through_e4m3(int64_t count, float scale, float* x) {
  for (int64_t i = 0; i < count; ++i) {
    x[i] = rounded_to_e4m3(x[i] / scale) * scale;
  }
}

CIUIC_ROUNDING_CLONES void encode_e4m3(int64_t count, const float* __restrict x,
                                       uint8_t* __restrict codes) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = bits_of(x[i]);
    const uint32_t magnitude = bits & kMagnitude;
    const uint32_t normal = (magnitude >> 20) - ((127U - 7U) << 3);
    const auto subnormal = static_cast<uint32_t>(
        static_cast<int32_t>(magnitude < ((127U - 6U) << 23) ? float_of(magnitude) * 512.0F : 0));
    const uint32_t code = magnitude >= kInfinity            ? 0x7FU
                          : magnitude < ((127U - 6U) << 23) ? subnormal
                                                            : normal;
    codes[i] = static_cast<uint8_t>(code | (bits >> 24 & 0x80U));
  }
}

CIUIC_ROUNDING_CLONES void decode_e4m3(int64_t count, const uint8_t* __restrict codes,
                                       float* __restrict x) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t magnitude = codes[i] & 0x7FU;
    const uint32_t sign = uint32_t{codes[i] & 0x80U} << 24;
    const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-9F;
    const uint32_t normal = (magnitude << 20) + ((127U - 7U) << 23);
    const uint32_t bits = magnitude == 0x7FU ? 0x7FC00000U
                          : magnitude < 8    ? bits_of(subnormal)
                                             : normal;
    x[i] = float_of(bits | sign);
  }
}

}  // namespace ciuic::plugins::precision
