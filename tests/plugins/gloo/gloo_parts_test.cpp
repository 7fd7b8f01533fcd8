// SPDX-License-Identifier: MIT
//
// The pure parts of the plugin, without ranks.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <ciuic/view.hpp>

#include "plugins/common/communicator/capabilities.h"
#include "plugins/common/communicator/liveness.h"
#include "plugins/common/communicator/reduction.h"
#include "plugins/common/communicator/sum_parts.h"
#include "plugins/communicator/gloo/network.h"
#include "plugins/communicator/gloo/order_keys.h"

namespace ciuic::plugins::gloo {
namespace {

TEST(GlooAddress, IsInTheNetworkThatThePeersShare) {
  const std::vector<Address> own{{"192.168.1.5", 24}, {"10.0.0.5", 8}};
  EXPECT_EQ(choose_address(own, {{{"172.16.0.9", 16}, {"10.0.0.6", 8}}}), "10.0.0.5");
}

TEST(GlooAddress, DefaultRouteWinsATie) {
  const std::vector<Address> own{{"192.168.1.5", 24}, {"10.0.0.5", 8}};
  EXPECT_EQ(choose_address(own, {{{"192.168.1.6", 24}, {"10.0.0.6", 8}}}), "192.168.1.5");
  EXPECT_EQ(choose_address(own, {{{"172.16.0.9", 16}}}), "192.168.1.5");
}

TEST(GlooAddress, BridgeThatEveryMachineHasLeadsNowhere) {
  const std::vector<Address> own{{"10.1.0.5", 24}, {"172.17.0.1", 16}};
  EXPECT_EQ(choose_address(own, {{{"10.2.0.5", 24}, {"172.17.0.1", 16}}}), "10.1.0.5");
}

TEST(GlooAddress, RanksOfOneMachineDoNotCountAsRepeated) {
  const std::vector<Address> own{{"10.1.0.5", 24}};
  EXPECT_EQ(choose_address(own, {own, {{"10.1.0.6", 24}}}), "10.1.0.5");
}

TEST(GlooAddress, NoneWithoutNetwork) { EXPECT_EQ(choose_address({}, {{{"10.1.0.5", 24}}}), ""); }

TEST(GlooAddress, TextReadsBack) {
  const auto back = from_text(to_text({{"10.0.0.5", 8}, {"192.168.1.5", 24}}));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[1].host, "192.168.1.5");
  EXPECT_EQ(back[1].prefix_bits, 24);
  EXPECT_TRUE(from_text("").empty());
}

TEST(GlooAddress, LiteralsAreKnown) {
  EXPECT_TRUE(is_literal("10.0.0.1"));
  EXPECT_TRUE(is_literal("::1"));
  EXPECT_FALSE(is_literal("eth0"));
}

/// Each element as the part of one rank.
template <typename T>
std::vector<const char*> each_of(const std::vector<T>& values) {
  std::vector<const char*> parts;
  for (const T& value : values) {
    parts.push_back(reinterpret_cast<const char*>(&value));
  }
  return parts;
}

TEST(GlooReduction, SumsInATree) {
  // (1e8 + 1) + (-1e8 + 1) in fp32 is 0 in a tree: both ones are lost; from left to right it is 1
  const std::vector<float> parts{1e8F, 1, -1e8F, 1};
  float out = -1;
  reduce_parts(kF32, CIUIC_REDUCE_SUM, each_of(parts), 1, &out);
  EXPECT_EQ(out, 0);
}

TEST(GlooReduction, SumsNarrowFloatsWide) {
  const std::vector<float> values{256, 1, 1, 1};  // in bf16, 256 + 1 is 256
  std::vector<uint16_t> parts(4);
  narrow(kBF16, values.data(), parts.data(), 4);
  uint16_t out = 0;
  reduce_parts(kBF16, CIUIC_REDUCE_SUM, each_of(parts), 1, &out);
  float sum = 0;
  widen(kBF16, &out, &sum, 1);
  EXPECT_EQ(sum, 260);
}

TEST(GlooReduction, BitwiseOfIntegers) {
  const std::vector<int32_t> parts{0b1100, 0b0110, -8};
  int32_t out = 0;
  reduce_parts(kI32, CIUIC_REDUCE_OR, each_of(parts), 1, &out);
  EXPECT_EQ(out, 0b1110 | -8);
  reduce_parts(kI32, CIUIC_REDUCE_AND, each_of(parts), 1, &out);
  EXPECT_EQ(out, 0b0100 & -8);
}

TEST(GlooReduction, ResultMayBeOneOfTheParts) {
  std::vector<float> a(5000, 1);
  std::vector<float> b(5000, 2);
  const std::vector<const char*> parts{reinterpret_cast<char*>(a.data()),
                                       reinterpret_cast<char*>(b.data())};
  reduce_parts(kF32, CIUIC_REDUCE_SUM, parts, 5000, b.data());
  EXPECT_EQ(b, std::vector<float>(5000, 3));
}

/// Sums whose averages lie as close to the middle between two bf16 as they can.
TEST(GlooReduction, AverageOfNarrowFloatsIsRoundedOnce) {
  for (const int divisor : {2, 3, 5, 7, 9, 64, 1023}) {
    for (int middle = 257; middle < 512; middle += 2) {
      for (int shift = 0; middle * divisor < 1 << (23 - shift); ++shift) {
        for (const int beside : {-1, 0, 1}) {
          const auto sum = static_cast<float>(middle * divisor * (1 << shift) + beside);
          float average = sum;
          divide_(kF32, &average, 1, divisor);
          uint16_t bits = 0;
          narrow(kBF16, &average, &bits, 1);
          float got = 0;
          widen(kBF16, &bits, &got, 1);
          int exponent = 0;
          const double mantissa = std::frexp(double{sum} / divisor, &exponent);
          const double want = std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
          ASSERT_EQ(double{got}, want) << sum << " / " << divisor;
        }
      }
    }
  }
}

TEST(GlooReduction, OrderKeysSortLikeFloats) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> sorted{-kInfinity, -3e38F, -1, -1e-45F, -0.0F,
                                  0.0F,       1e-45F, 1,  3e38F,   kInfinity};
  std::vector<float> keys = sorted;
  const auto count = static_cast<int64_t>(sorted.size());
  to_order_keys_(kF32, CIUIC_REDUCE_MAX, keys.data(), count);
  std::vector<int32_t> numbers(keys.size());
  std::memcpy(numbers.data(), keys.data(), keys.size() * 4);
  for (size_t i = 1; i < numbers.size(); ++i) {
    EXPECT_LT(numbers[i - 1], numbers[i]);
  }
  from_order_keys_(kF32, keys.data(), count);
  EXPECT_EQ(std::memcmp(keys.data(), sorted.data(), keys.size() * 4), 0);
}

TEST(GlooReduction, OrderKeyOfNaNWins) {
  for (const uint32_t reduce : {CIUIC_REDUCE_MIN, CIUIC_REDUCE_MAX}) {
    double x[3] = {std::nan(""), -std::nan(""), 1};
    to_order_keys_(kF64, reduce, x, 3);
    int64_t keys[3];
    std::memcpy(keys, x, sizeof(keys));
    EXPECT_EQ(keys[0], keys[1]);
    EXPECT_EQ(keys[0] < keys[2], reduce == CIUIC_REDUCE_MIN);
    from_order_keys_(kF64, x, 3);
    EXPECT_TRUE(std::isnan(x[0]));
    EXPECT_EQ(x[2], 1);
  }
}

TEST(GlooReduction, NarrowRoundsToNearestEven) {
  const float values[4] = {1 + 1.0F / 256, 1 + 3.0F / 256, std::nanf(""), 3.4e38F};
  uint16_t bits[4];
  narrow(kBF16, values, bits, 4);
  EXPECT_EQ(bits[0], 0x3F80);
  EXPECT_EQ(bits[1], 0x3F82);
  EXPECT_EQ(bits[2] & 0x7FC0, 0x7FC0);
  EXPECT_EQ(bits[3], 0x7F80);
}

TEST(GlooLiveness, SeesTheEndOfAProcess) {
  EXPECT_EQ(death_of(own_identity()), "");
  EXPECT_EQ(stop_of(own_identity()), "");
  const std::string own = own_identity();
  const std::string other =
      own.substr(0, own.rfind('|')) + "|1";  // the pid is another process's now
  EXPECT_NE(death_of(other), "");
  EXPECT_EQ(death_of("other-machine|1|1"), "");
  EXPECT_EQ(death_of(""), "");
}

}  // namespace
}  // namespace ciuic::plugins::gloo
