// SPDX-License-Identifier: MIT
//
// IEEE half precision as plain conversions, beside those of bfloat16 in numbers.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace ciuic::testing {

inline float f16_to_float(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) {
    return mantissa == 0 ? sign * INFINITY : NAN;
  }
  return exponent == 0 ? sign * std::ldexp(static_cast<float>(mantissa), -24)
                       : sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

/// Rounds to nearest, ties to even. NaN stays NaN.
inline uint16_t float_to_f16(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) {
    return static_cast<uint16_t>(sign | 0x7E00);
  }
  if (magnitude >= 65520.0F) {
    return static_cast<uint16_t>(sign | 0x7C00);
  }
  if (magnitude < 0x1p-14F) {  // subnormal: a multiple of 2^-24
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24F)));
  }
  int exponent = 0;
  const float fraction = std::frexp(magnitude, &exponent);                  // in [0.5, 1)
  const auto mantissa = static_cast<int>(std::nearbyint(fraction * 2048));  // 1024 .. 2048
  return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + mantissa - 1024));
}

}  // namespace ciuic::testing
