// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "rule_driver.h"

namespace ciuic::testing {
namespace {

class Lion : public ::testing::Test, protected RuleDriver {
 protected:
  Lion() : RuleDriver("lion") {}
};

/// Program 1 of arXiv:2302.06675 in fp64.
struct LionReference {
  double beta1, beta2, weight_decay;
  std::vector<double> value, mean;
  std::vector<bool> is_near_zero;  // a rounding may have decided a sign

  void step(const std::vector<float>& grad, const Step& s) {
    mean.resize(value.size());
    is_near_zero.resize(value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      const double g = grad[i] * s.grad_scale;
      const double c = beta1 * mean[i] + (1 - beta1) * g;
      is_near_zero[i] = is_near_zero[i] || std::abs(c) < 1e-5;
      const double update = (c > 0 ? 1 : c < 0 ? -1 : 0) + weight_decay * s.weight_decay * value[i];
      value[i] -= s.lr * update;
      mean[i] = beta2 * mean[i] + (1 - beta2) * g;
    }
  }
};

TEST_F(Lion, FollowsTheFormulaInDouble) {
  constexpr double kTolerance = 50.0 / (1 << 23);  // a rounding of the value in each of 50 steps
  const PluginInstance lion = make({{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.5}});
  Operand o(3000);
  o.value = random_values(3000, 1);
  LionReference reference{0.9, 0.99, 0.5, {o.value.begin(), o.value.end()}, {}, {}};
  for (uint64_t t = 1; t <= 50; ++t) {
    o.grad = random_values(3000, static_cast<uint32_t>(t) + 1);
    const Step step{t, 1e-3, 0.5, 0.25};
    update(lion, o, step);
    reference.step(o.grad, step);
  }
  int64_t compared = 0;
  for (size_t i = 0; i < 3000; ++i) {
    if (!reference.is_near_zero[i]) {
      ++compared;
      ASSERT_NEAR(o.value[i], reference.value[i],
                  kTolerance * std::max(1.0, std::abs(reference.value[i])));
    }
  }
  EXPECT_GT(compared, 2800);
}

TEST_F(Lion, TwoStepsByHand) {
  const PluginInstance lion = make({{"weight_decay", 0.5}});
  Operand o(3);
  o.value = {1, -1, 2};
  o.grad = {1, -1, 0};
  update(lion, o, {1, 0.1});
  EXPECT_FLOAT_EQ(o.value[0], 0.95F - 0.1F);
  EXPECT_FLOAT_EQ(o.value[1], -0.95F + 0.1F);
  EXPECT_FLOAT_EQ(o.value[2], 1.9F);  // the sign of 0 is 0
  // m = 0.01 and g = -0.05: 0.9 m outweighs 0.1 g, then m moves to 0.99 * 0.01 - 0.0005.
  o.grad = {-0.05F, 0.05F, 0};
  update(lion, o, {2, 0.1, 0});
  EXPECT_FLOAT_EQ(o.value[0], 0.75F);
  EXPECT_FLOAT_EQ(o.state_of(0)[0], 0.0094F);
}

TEST_F(Lion, ANanGradientShows) {
  Operand o(2);
  o.grad = {std::numeric_limits<float>::quiet_NaN(), 1};
  update(make(), o, {1, 0.1});
  EXPECT_TRUE(std::isnan(o.value[0]));
  EXPECT_FLOAT_EQ(o.value[1], -0.1F);
}

}  // namespace
}  // namespace ciuic::testing
