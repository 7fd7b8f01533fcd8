// SPDX-License-Identifier: MIT
//
// Floating-point formats of up to 16 bits as a table of all their values: what a cast must give is
// looked up between two neighbours, so there is no arithmetic here that could round wrongly itself.
//
//   f16       1 sign, 5 exponent, 10 mantissa bits; IEEE 754
//   bf16      1, 8, 7; IEEE 754
//   e5m2      1, 5, 2; IEEE 754                        FP8 Formats for Deep Learning,
//   e4m3fn    1, 4, 3; no infinity, NaN is S.1111.111  arXiv:2209.05433, table 1
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ciuic/view.hpp>

namespace ciuic::testing {

inline constexpr ciuic_dtype kE4M3{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1};
inline constexpr ciuic_dtype kE5M2{CIUIC_DTYPE_FLOAT8_E5M2, 8, 1};

class FloatFormat {
 public:
  /// Throws UNIMPLEMENTED for other dtypes.
  static const FloatFormat& of(ciuic_dtype dtype) {
    static const FloatFormat f16(5, 10, true);
    static const FloatFormat bf16(8, 7, true);
    static const FloatFormat e4m3(4, 3, false);
    static const FloatFormat e5m2(5, 2, true);
    if (same(dtype, kF16)) {
      return f16;
    }
    if (same(dtype, kBF16)) {
      return bf16;
    }
    if (same(dtype, kE4M3)) {
      return e4m3;
    }
    if (same(dtype, kE5M2)) {
      return e5m2;
    }
    throw Error(CIUIC_UNIMPLEMENTED, "no table of the values of " + dtype_name(dtype));
  }
  /// 1, 5, 6; IEEE 754: no dtype of the ABI, DeepSeek-V3's for stored attention outputs.
  static const FloatFormat& e5m6() {
    static const FloatFormat format(5, 6, true);
    return format;
  }
  static bool knows(ciuic_dtype dtype) {
    return same(dtype, kF16) || same(dtype, kBF16) || same(dtype, kE4M3) || same(dtype, kE5M2);
  }

  [[nodiscard]] int bits() const { return 1 + exponent_bits_ + mantissa_bits_; }
  [[nodiscard]] uint32_t num_codes() const { return 1U << bits(); }
  [[nodiscard]] double largest() const { return values_.back(); }
  [[nodiscard]] double smallest() const { return values_[1]; }  // subnormal
  /// Half a step, relative: the largest relative error of a normal number.
  [[nodiscard]] double epsilon() const { return std::ldexp(1.0, -mantissa_bits_ - 1); }
  /// Finite values from 0 up; the index is the code.
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

  [[nodiscard]] double decode(uint32_t code) const {
    const uint32_t magnitude = code & (sign_bit() - 1);
    const double sign = (code & sign_bit()) != 0 ? -1.0 : 1.0;
    if (magnitude < values_.size()) {
      return sign * values_[magnitude];
    }
    const bool is_infinity = has_infinity_ && magnitude == values_.size();
    return is_infinity ? sign * std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::quiet_NaN();
  }

  /// Rounds to nearest, ties to the even code. Past the largest: infinity where there is one, else
  /// NaN; the largest itself when `saturates`.
  [[nodiscard]] uint32_t encode(double value, bool saturates) const {
    const uint32_t sign = std::signbit(value) ? sign_bit() : 0;
    const double x = std::fabs(value);
    if (std::isnan(x)) {
      return sign | (sign_bit() - 1);
    }
    const auto above = std::upper_bound(values_.begin(), values_.end(), x);
    const auto low = static_cast<uint32_t>(above - values_.begin()) - 1;
    const double step = low + 1 < values_.size() ? values_[low + 1] - values_[low]
                                                 : values_[low] - values_[low - 1];
    const double half = values_[low] + step / 2;
    const uint32_t code = x < half || (x == half && low % 2 == 0) ? low : low + 1;
    const auto largest = static_cast<uint32_t>(values_.size() - 1);
    if (code <= largest) {
      return sign | code;
    }
    return sign | (saturates ? largest : (has_infinity_ ? largest + 1 : sign_bit() - 1));
  }

 private:
  FloatFormat(int exponent_bits, int mantissa_bits, bool has_infinity)
      : exponent_bits_(exponent_bits), mantissa_bits_(mantissa_bits), has_infinity_(has_infinity) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int mantissas = 1 << mantissa_bits;
    const int codes = ((1 << exponent_bits) - (has_infinity ? 1 : 0)) * mantissas -
                      (has_infinity ? 0 : 1);  // e4m3fn gives its last code to NaN
    for (int code = 0; code < codes; ++code) {
      const int exponent = code / mantissas;
      const int mantissa = code % mantissas;
      values_.push_back(exponent == 0
                            ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                            : std::ldexp(mantissas + mantissa, exponent - bias - mantissa_bits));
    }
  }
  [[nodiscard]] uint32_t sign_bit() const {
    return 1U << static_cast<unsigned>(exponent_bits_ + mantissa_bits_);
  }

  int exponent_bits_;
  int mantissa_bits_;
  bool has_infinity_;
  std::vector<double> values_;
};

}  // namespace ciuic::testing
