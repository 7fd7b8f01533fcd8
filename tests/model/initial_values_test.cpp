// SPDX-License-Identifier: MIT
#include "core/model/initial_values.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

std::vector<float> values(const ParameterSpec& spec, uint64_t seed, int64_t begin, int64_t end) {
  std::vector<float> out(end - begin);
  fill_initial_values(spec, 0.02, seed, begin, out);
  return out;
}

const ParameterSpec kMatrix{
    "model.layers.0.mlp.gate_proj.weight", {100, 77}, 1, false, Init::Normal};

TEST(InitialValues, SlicesHoldTheBitsOfTheWhole) {
  const std::vector<float> whole = values(kMatrix, 7, 0, 7700);
  for (const auto& [begin, end] :
       {std::pair{0, 1}, {1, 2}, {255, 257}, {256, 1000}, {333, 334}, {7001, 7700}}) {
    EXPECT_EQ(values(kMatrix, 7, begin, end),
              std::vector<float>(whole.begin() + begin, whole.begin() + end))
        << begin;
  }
}

TEST(InitialValues, DependOnSeedAndName) {
  ParameterSpec other = kMatrix;
  other.name += "x";
  const std::vector<float> first = values(kMatrix, 7, 0, 100);
  EXPECT_EQ(first, values(kMatrix, 7, 0, 100));
  EXPECT_NE(first, values(kMatrix, 8, 0, 100));
  EXPECT_NE(first, values(other, 7, 0, 100));
}

// The first values of a fixed seed, so that no change of compiler or formula moves the start of a
// run unseen.
TEST(InitialValues, AreTheSameInEveryBuild) {
  const std::vector<float> first = values(kMatrix, 1234, 0, 4);
  const std::vector<float> expected = {-0x1.a99ddp-9f, -0x1.5d6b64p-8f, 0x1.ab765p-7f,
                                       0x1.140fbp-6f};
  EXPECT_EQ(first, expected);
}

TEST(InitialValues, AreNormal) {
  const int64_t count = 1 << 20;
  const ParameterSpec spec{"w", {count}, 0, false, Init::Normal};
  double moments[5] = {};
  double neighbours = 0;
  int64_t beyond_two = 0;
  const std::vector<float> drawn = values(spec, 3, 0, count);
  for (int64_t i = 0; i < count; ++i) {
    const double z = drawn[i] / 0.02;
    ASSERT_TRUE(std::isfinite(z));
    double power = z;
    for (int m = 1; m <= 4; ++m, power *= z) {
      moments[m] += power / count;
    }
    neighbours += i > 0 ? z * (drawn[i - 1] / 0.02) / count : 0;
    beyond_two += std::abs(z) > 2 ? 1 : 0;
  }
  // Five standard errors of a sample of this size.
  EXPECT_NEAR(moments[1], 0, 0.005);
  EXPECT_NEAR(moments[2], 1, 0.007);
  EXPECT_NEAR(moments[3], 0, 0.02);
  EXPECT_NEAR(moments[4], 3, 0.05);
  EXPECT_NEAR(neighbours, 0, 0.005);
  EXPECT_NEAR(static_cast<double>(beyond_two) / count, 0.0455, 0.001);
}

TEST(InitialValues, OfNormsAreOne) {
  const ParameterSpec norm{"model.norm.weight", {5}, 0, false, Init::Ones};
  EXPECT_EQ(values(norm, 1, 1, 4), std::vector<float>(3, 1.0f));
}

}  // namespace
}  // namespace ciuic::core
