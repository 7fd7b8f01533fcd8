// SPDX-License-Identifier: MIT
//
// e4m3fn, bf16 and f16 against their definitions: sign x 2^(exponent - bias) x (1 + mantissa), the
// nearest value wins, an even code where two are as near.
#include "plugins/checkpoint/safetensors/number_formats.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ciuic::plugins::safetensors {
namespace {

/// By definition, in fp64; NaN where the format has it.
double defined(unsigned bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const unsigned mantissa = bits & ((1U << mantissa_bits) - 1);
  const unsigned top = (1U << exponent_bits) - 1;
  const unsigned exponent = (bits >> mantissa_bits) & top;
  const bool is_negative = ((bits >> (exponent_bits + mantissa_bits)) & 1U) != 0;
  const double fraction = static_cast<double>(mantissa) / (1 << mantissa_bits);
  double value = exponent == 0 ? std::pow(2.0, 1 - bias) * fraction
                               : std::pow(2.0, static_cast<int>(exponent) - bias) * (1 + fraction);
  if (has_infinity && exponent == top) {
    value = mantissa == 0 ? INFINITY : NAN;
  }
  if (!has_infinity && exponent == top && mantissa == (1U << mantissa_bits) - 1) {
    value = NAN;
  }
  return is_negative ? -value : value;
}

bool is_equal(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

float bf16(unsigned bits) { return from_bf16(static_cast<uint16_t>(bits)); }

/// The code whose value is nearest, by looking at all of them.
uint8_t nearest_e4m3(double value) {
  const unsigned sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) {
    return static_cast<uint8_t>(sign | 0x7f);
  }
  unsigned best = 0;
  for (unsigned code = 1; code <= 0x7e; ++code) {
    const double before = std::fabs(std::fabs(value) - defined(best, 4, 3, false));
    const double now = std::fabs(std::fabs(value) - defined(code, 4, 3, false));
    best = now < before || (now == before && code % 2 == 0) ? code : best;
  }
  // An infinity is as far from all.
  return static_cast<uint8_t>(sign | (std::isinf(value) ? 0x7e : best));
}

TEST(E4m3, EveryCodeHasItsValue) {
  for (unsigned code = 0; code < 256; ++code) {
    EXPECT_TRUE(is_equal(kE4m3Values[code], defined(code, 4, 3, false))) << code;
    EXPECT_EQ(is_e4m3_nan(static_cast<uint8_t>(code)), std::isnan(kE4m3Values[code])) << code;
  }
  EXPECT_EQ(kE4m3Values[0x7e], kLargestE4m3);
}

TEST(E4m3, EveryCodeComesBack) {
  for (unsigned code = 0; code < 256; ++code) {
    EXPECT_EQ(to_e4m3(kE4m3Values[code]), code);
  }
}

TEST(E4m3, EveryBf16ValueGoesToTheNearestCode) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = bf16(bits);
    ASSERT_EQ(to_e4m3(value), nearest_e4m3(value)) << bits << " " << value;
  }
}

TEST(E4m3, TiesAndTheirNeighboursGoWhereTheyShould) {
  for (unsigned code = 0; code < 0x7e; ++code) {
    const float middle = (kE4m3Values[code] + kE4m3Values[code + 1]) / 2;
    for (const float value : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F),
                              -middle, -std::nextafter(middle, 1e9F)}) {
      EXPECT_EQ(to_e4m3(value), nearest_e4m3(value)) << value;
    }
  }
}

TEST(E4m3, RandomValuesGoToTheNearestCode) {
  constexpr uint32_t kSeed = 20261201;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 200'000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    ASSERT_EQ(to_e4m3(value), nearest_e4m3(value)) << "seed " << kSeed << ": " << value;
  }
}

TEST(Bf16, EveryValueIsDefinedAndComesBack) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = bf16(bits);
    ASSERT_TRUE(is_equal(value, defined(bits, 8, 7, true))) << bits;
    if (!std::isnan(value)) {
      ASSERT_EQ(to_bf16(value), bits);
    } else {
      ASSERT_TRUE(std::isnan(bf16(to_bf16(value)))) << bits;
    }
  }
}

TEST(Bf16, WhatLiesBetweenGoesToTheNearestEvenAtATie) {
  for (unsigned bits = 0; bits < 0x7f80;
       ++bits) {  // up to the largest, whose neighbour is infinity
    const double low = defined(bits, 8, 7, true);
    const double high = bits == 0x7f7f ? std::pow(2.0, 128) : defined(bits + 1, 8, 7, true);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: 9 bits
    const unsigned even = bits + bits % 2;
    ASSERT_EQ(to_bf16(middle), even) << bits;
    ASSERT_EQ(to_bf16(std::nextafter(middle, 0.0F)), bits) << bits;
    ASSERT_EQ(to_bf16(-std::nextafter(middle, INFINITY)), 0x8000 | (bits + 1)) << bits;
  }
}

TEST(F16, EveryValueIsDefined) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    ASSERT_TRUE(is_equal(from_f16(static_cast<uint16_t>(bits)), defined(bits, 5, 10, true)))
        << bits;
  }
}

TEST(Bf16, ANanStaysOneWhateverItsBits) {
  for (const uint32_t bits : {0x7f800001U, 0xff80ffffU, 0x7fffffffU, 0x7f808000U}) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    EXPECT_TRUE(std::isnan(bf16(to_bf16(value)))) << std::hex << bits;
  }
}

}  // namespace
}  // namespace ciuic::plugins::safetensors
