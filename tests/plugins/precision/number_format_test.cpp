// SPDX-License-Identifier: MIT
//
// Casts of the precision plugins against the table of a format's values (float_format.hpp): every
// code of every format, every bf16 and f16 number, and every tie with its two neighbours.
#include "plugins/common/precision/number_format.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ciuic/testing/float_format.hpp>

#include "plugins/common/precision/tile_rounding.h"

namespace ciuic::testing {
namespace {

using plugins::precision::NumberFormat;

struct Case {
  const char* name;
  NumberFormat format;
  const FloatFormat& table;
};
std::vector<Case> cases() {
  namespace p = plugins::precision;
  return {{"e4m3", p::kE4m3, FloatFormat::of(kE4M3)},
          {"e5m2", p::kE5m2, FloatFormat::of(kE5M2)},
          {"e5m6", p::kE5m6, FloatFormat::e5m6()},
          {"f16", p::kHalf, FloatFormat::of(kF16)},
          {"bf16", p::kBfloat, FloatFormat::of(kBF16)}};
}

void add_both_signs(std::vector<float>& out, double value) {
  out.push_back(static_cast<float>(value));
  out.push_back(static_cast<float>(-value));
}

/// All finite bf16 and f16 numbers, the ties of a format and the floats beside them.
std::vector<float> inputs(const FloatFormat& target) {
  std::vector<float> out;
  for (const ciuic_dtype dtype : {kBF16, kF16}) {
    for (const double value : FloatFormat::of(dtype).values()) {
      add_both_signs(out, value);
    }
  }
  const std::vector<double>& values = target.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const double step =
        i + 1 < values.size() ? values[i + 1] - values[i] : values[i] - values[i - 1];
    const auto tie = static_cast<float>(values[i] + step / 2);
    for (const float x : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, 1e38F)}) {
      add_both_signs(out, x);
    }
  }
  for (const float x : {std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min(),
                        std::numeric_limits<float>::infinity()}) {
    add_both_signs(out, x);
  }
  return out;
}

std::string text(const Case& c, float x) {
  return std::string(c.name) + " of " + std::to_string(x);
}

TEST(NumberFormat, DecodesEveryCodeAndEncodesItBack) {
  for (const Case& c : cases()) {
    for (uint32_t code = 0; code < c.table.num_codes(); ++code) {
      const float value = c.format.decode(code);
      const double expected = c.table.decode(code);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value)) << c.name << " code " << code;
        continue;
      }
      EXPECT_EQ(static_cast<double>(value), expected) << c.name << " code " << code;
      EXPECT_EQ(c.format.encode(value, false), code) << c.name;
    }
  }
}

TEST(NumberFormat, RoundsToNearestEven) {
  for (const Case& c : cases()) {
    for (const float x : inputs(c.table)) {
      for (const bool saturates : {false, true}) {
        ASSERT_EQ(c.format.encode(x, saturates), c.table.encode(x, saturates)) << text(c, x);
      }
    }
    EXPECT_TRUE(std::isnan(c.format.decode(c.format.encode(std::nanf(""), true)))) << c.name;
  }
}

TEST(TileRounding, WidensEveryCode) {
  for (const Case& c : {cases()[3], cases()[4]}) {
    std::vector<uint16_t> codes(1 << 16);
    for (size_t i = 0; i < codes.size(); ++i) {
      codes[i] = static_cast<uint16_t>(i);
    }
    std::vector<float> wide(codes.size());
    const bool is_half = c.format.exponent_bits == 5;
    (is_half ? plugins::precision::widen_f16 : plugins::precision::widen_bf16)(
        static_cast<int64_t>(codes.size()), codes.data(), wide.data());
    for (size_t i = 0; i < codes.size(); ++i) {
      const float expected = c.format.decode(static_cast<uint32_t>(i));
      ASSERT_TRUE(std::isnan(expected)
                      ? std::isnan(wide[i])
                      : std::bit_cast<uint32_t>(wide[i]) == std::bit_cast<uint32_t>(expected))
          << c.name << " code " << i;
    }
  }
}

TEST(TileRounding, NarrowsAsTheTable) {
  for (const Case& c : {cases()[3], cases()[4]}) {
    const std::vector<float> in = inputs(c.table);
    std::vector<uint16_t> out(in.size());
    const bool is_half = c.format.exponent_bits == 5;
    const auto narrow =
        is_half ? plugins::precision::narrow_to_f16 : plugins::precision::narrow_to_bf16;
    narrow(static_cast<int64_t>(in.size()), in.data(), out.data());
    for (size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(out[i], c.table.encode(in[i], false)) << text(c, in[i]);
    }
    const float nan = std::nanf("");
    narrow(1, &nan, out.data());
    EXPECT_TRUE(std::isnan(c.table.decode(out[0])));
  }
}

TEST(TileRounding, EncodesAndDecodesE4m3) {
  const FloatFormat& table = FloatFormat::of(kE4M3);
  std::vector<uint8_t> codes(256);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<uint8_t>(i);
  }
  std::vector<float> values(256);
  plugins::precision::decode_e4m3(256, codes.data(), values.data());
  std::vector<uint8_t> back(256);
  plugins::precision::encode_e4m3(256, values.data(), back.data());
  for (uint32_t i = 0; i < 256; ++i) {
    const bool is_nan = std::isnan(table.decode(i));
    EXPECT_TRUE(is_nan ? std::isnan(values[i]) : values[i] == table.decode(i)) << i;
    EXPECT_EQ(back[i], i);
  }
}

/// x / scale, rounded: the loops against the table.
TEST(TileRounding, RoundsToE4m3AndE5m6) {
  const FloatFormat& e4m3 = FloatFormat::of(kE4M3);
  const FloatFormat& e5m6 = FloatFormat::e5m6();
  for (const float scale : {1.0F, 0.37F, 0x1p-20F}) {
    for (const float x : inputs(e4m3)) {
      const float y = x / scale;
      if (std::fabs(y) <= 448) {
        float got = x;
        plugins::precision::round_to_e4m3(1, scale, &got);
        ASSERT_EQ(got, e4m3.decode(e4m3.encode(y, true))) << x << " / " << scale;
        ASSERT_EQ(std::signbit(got), std::signbit(x));
      }
    }
  }
  for (const float x : inputs(e5m6)) {
    if (std::fabs(x) <= 65024) {
      float got = x;
      plugins::precision::through_e5m6(1, 1.0F, &got);
      ASSERT_EQ(got, e5m6.decode(e5m6.encode(x, true))) << x;
    }
  }
}

}  // namespace
}  // namespace ciuic::testing
