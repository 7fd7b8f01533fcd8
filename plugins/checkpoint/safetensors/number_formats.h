// SPDX-License-Identifier: MIT
//
// Floating-point formats narrower than fp32, element by element. Rounding is to nearest, ties to
// even.
//
// e4m3fn: 1 sign, 4 exponent (bias 7) and 3 mantissa bits; no infinities, the largest value is 448,
// 0x7f and 0xff are NaN. Source: FP8 Formats for Deep Learning, arXiv:2209.05433, section 3.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace ciuic::plugins::safetensors {

inline constexpr float kLargestE4m3 = 448.0F;

[[nodiscard]] constexpr bool is_e4m3_nan(uint8_t code) { return (code & 0x7fU) == 0x7fU; }
/// The value of each code.
inline constexpr std::array<float, 256> kE4m3Values = [] {
  std::array<float, 256> values{};
  for (unsigned code = 0; code < values.size(); ++code) {
    const unsigned exponent = (code >> 3) & 15U;
    const unsigned mantissa = code & 7U;
    float value = 1.0F / 512.0F;  // 2^-9, the step of the smallest numbers
    value *= static_cast<float>(exponent == 0 ? mantissa : 8U + mantissa);
    for (unsigned e = 1; e < exponent; ++e) {
      value *= 2;
    }
    if (is_e4m3_nan(static_cast<uint8_t>(code))) {
      value = std::numeric_limits<float>::quiet_NaN();
    }
    values[code] = (code & 0x80U) != 0 ? -value : value;
  }
  return values;
}();
/// What is beyond 448, infinities too, becomes 448; NaN stays NaN.
[[nodiscard]] uint8_t to_e4m3(float value);

[[nodiscard]] float from_bf16(uint16_t bits);
/// Beyond the largest value: infinity. NaN stays NaN.
[[nodiscard]] uint16_t to_bf16(float value);

[[nodiscard]] float from_f16(uint16_t bits);

}  // namespace ciuic::plugins::safetensors
