// SPDX-License-Identifier: MIT
//
// Floating-point formats of up to 16 bits: a code's value, and the code of a number. Rounding is to
// nearest, ties to even; subnormals and signed zeros are kept.
//
//   e4m3   1 sign, 4 exponent, 3 mantissa bits; no infinity, NaN is S.1111.111, the largest is 448
//   e5m2   1, 5, 2; IEEE 754                  FP8 Formats for Deep Learning, arXiv:2209.05433
//   e5m6   1, 5, 6; IEEE 754; 12 bits         DeepSeek-V3, arXiv:2412.19437, sec. 3.3.2
//   f16    1, 5, 10;  bf16   1, 8, 7; IEEE 754
//
// Plain code for single numbers; tile_rounding.h has the loops over many.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ciuic::plugins::precision {

struct NumberFormat {
  int exponent_bits, mantissa_bits;
  bool has_infinity;

  [[nodiscard]] constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  [[nodiscard]] constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  [[nodiscard]] constexpr uint32_t sign_bit() const {
    return 1U << static_cast<unsigned>(exponent_bits + mantissa_bits);
  }
  /// Of the largest finite number.
  [[nodiscard]] constexpr uint32_t largest_code() const {
    const uint32_t infinity = sign_bit() - (1U << static_cast<unsigned>(mantissa_bits));
    return has_infinity ? infinity - 1 : sign_bit() - 2;
  }
  [[nodiscard]] constexpr uint32_t nan_code() const { return sign_bit() - 1; }

  [[nodiscard]] float decode(uint32_t code) const {
    const uint32_t magnitude = code & (sign_bit() - 1);
    const float sign = (code & sign_bit()) != 0 ? -1.0F : 1.0F;
    if (magnitude > largest_code()) {
      const bool is_infinity = has_infinity && magnitude == largest_code() + 1;
      return is_infinity ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
    }
    const auto exponent = static_cast<int>(magnitude >> static_cast<unsigned>(mantissa_bits));
    const auto mantissa =
        static_cast<int>(magnitude & ((1U << static_cast<unsigned>(mantissa_bits)) - 1));
    const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    return sign * std::ldexp(static_cast<float>(whole),
                             (exponent == 0 ? 1 : exponent) - bias() - mantissa_bits);
  }

  /// Past the largest: the largest itself when `saturates`, else infinity, or NaN where there is
  /// none.
  [[nodiscard]] uint32_t encode(float value, bool saturates) const {
    const uint32_t sign = std::signbit(value) ? sign_bit() : 0;
    if (std::isnan(value)) {
      return sign | nan_code();
    }
    const uint32_t past = saturates ? largest_code() : largest_code() + 1;
    if (std::isinf(value)) {
      return sign | past;
    }
    // In steps of the number's binade the nearest whole one is the mantissa; a carry is the next
    // exponent by itself.
    const double x = std::fabs(static_cast<double>(value));
    const int smallest = 1 - bias();
    const int exponent = x == 0 ? smallest : std::max(std::ilogb(x), smallest);
    if (exponent > bias() + 1) {
      return sign | past;
    }
    const auto steps =
        static_cast<uint32_t>(std::nearbyint(std::ldexp(x, mantissa_bits - exponent)));
    const uint32_t code =
        (static_cast<uint32_t>(exponent - smallest) << static_cast<unsigned>(mantissa_bits)) +
        steps;
    return sign | (code > largest_code() ? past : code);
  }
};

inline constexpr NumberFormat kE4m3{4, 3, false};
inline constexpr NumberFormat kE5m2{5, 2, true};
inline constexpr NumberFormat kE5m6{5, 6, true};
inline constexpr NumberFormat kHalf{5, 10, true};
inline constexpr NumberFormat kBfloat{8, 7, true};

}  // namespace ciuic::plugins::precision
