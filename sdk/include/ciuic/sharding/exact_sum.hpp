// SPDX-License-Identifier: MIT
//
// A sum of doubles without rounding, so its bits depend neither on the order nor on how the numbers
// were spread over ranks. (A long accumulator after U. Kulisch, "Computer Arithmetic and Validity",
// ch. 8; here with one 128-bit counter for each 32 binary places, so carries wait until the end.)
//
// The square of a float is exact in double: a sum of squares of fp32 gradients is exact altogether.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace ciuic::sharding {

/// Of finite numbers that are not negative; up to 2^43 of them between two calls of limbs().
class ExactSum {
 public:
  static constexpr int kLimbBits = 32;
  /// Doubles reach from 2^-1074 to 2^1024; 64 places more for their number.
  static constexpr int kLimbs = (1074 + 1024 + 64) / kLimbBits + 1;
  using Limbs = std::array<int64_t, kLimbs>;  // of weight 2^(32 i - 1074)

  void add(double x) noexcept {
    uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof(bits));
    const auto exponent = static_cast<int>(bits >> 52);  // the sign is 0
    uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
    int place = 0;  // of the mantissa's last bit, from 2^-1074 on
    if (exponent > 0) {
      mantissa |= uint64_t{1} << 52;
      place = exponent - 1;
    }
    counters_[static_cast<size_t>(place / kLimbBits)] += static_cast<Wide>(mantissa)
                                                         << (place % kLimbBits);
  }

  /// Sums of other ranks: limbs may be added element by element, each sum below 2^63.
  void add(const Limbs& limbs) noexcept {
    for (size_t i = 0; i < counters_.size(); ++i) {
      counters_[i] += static_cast<Wide>(static_cast<uint64_t>(limbs[i]));
    }
  }

  /// The sum in digits below 2^32.
  [[nodiscard]] Limbs limbs() const noexcept {
    Limbs out{};
    Wide carry = 0;
    for (size_t i = 0; i < counters_.size(); ++i) {
      carry += counters_[i];
      out[i] = static_cast<int64_t>(static_cast<uint64_t>(carry) & 0xFFFFFFFFU);
      carry >>= kLimbBits;
    }
    return out;
  }

  /// Rounded once, to nearest even; infinite beyond the largest double.
  [[nodiscard]] double value() const noexcept {
    const Limbs digits = limbs();
    size_t top = digits.size();
    while (top > 0 && digits[top - 1] == 0) {
      --top;
    }
    // 96 bits from the top one on, and whether anything lies below them.
    Wide head = 0;
    for (size_t i = 1; i <= 3; ++i) {
      head = (head << kLimbBits) |
             static_cast<Wide>(top >= i ? static_cast<uint64_t>(digits[top - i]) : 0);
    }
    bool is_more = false;
    for (size_t i = 0; i + 3 < top; ++i) {
      is_more = is_more || digits[i] != 0;
    }
    return rounded(head, is_more, (static_cast<int>(top) - 3) * kLimbBits - 1074);
  }

 private:
  __extension__ using Wide = unsigned __int128;

  /// head * 2^exponent, where `is_more` stands for a bit below it. Results of squares' sums are
  /// normal or exact, so one rounding to 53 bits is all there is.
  static double rounded(Wide head, bool is_more, int exponent) noexcept {
    int extra = 0;  // bits beyond 53
    while ((head >> extra) >> 53 != 0) {
      ++extra;
    }
    // A subnormal result has fewer bits: none below 2^-1074.
    extra = extra < -1074 - exponent ? -1074 - exponent : extra;
    if (extra == 0) {
      return std::ldexp(static_cast<double>(static_cast<uint64_t>(head)), exponent);
    }
    auto kept = static_cast<uint64_t>(head >> extra);
    const Wide rest = head & ((static_cast<Wide>(1) << extra) - 1);
    const Wide half = static_cast<Wide>(1) << (extra - 1);
    const bool is_up = rest > half || (rest == half && (is_more || (kept & 1) != 0));
    kept += is_up ? 1 : 0;
    return std::ldexp(static_cast<double>(kept), exponent + extra);
  }

  std::array<Wide, kLimbs> counters_{};
};

}  // namespace ciuic::sharding
