// SPDX-License-Identifier: MIT
// Balance losses worked out by hand. Their gradients: model_test.cpp.
#include "core/model/balance.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "core/model/model_config.h"

namespace ciuic::core::testing {
namespace {

// Two tokens, four experts in two groups, two per token. Shares of scores: (0.6, 0.3, 0.1, 0) and
// (0.2, 0.4, 0.1, 0.3), so P = (0.4, 0.35, 0.1, 0.15).
at::Tensor scores() {
  return at::tensor(std::vector<double>{0.6, 0.3, 0.1, 0.0, 0.4, 0.8, 0.2, 0.6}).view({2, 4});
}

RouterRule rule(const char* model_type) {
  ModelConfig c = defaults_of(model_type);
  c.n_routed_experts = 4;
  c.num_experts_per_tok = 2;
  c.n_group = 2;
  c.topk_group = 1;
  return RouterRule(c);
}

at::Tensor experts(const std::vector<int>& chosen) { return at::tensor(chosen).view({2, 2}); }

// Equations 17-20 of DeepSeek-V3: the best of the unbiased scores count, (0, 1) and (1, 3), whoever
// was chosen: f = 4 / (2 * 2) * (1, 2, 0, 1), L = 0.4 + 0.7 + 0.15.
TEST(Balance, OfASequenceInV3) {
  Objective objective;
  objective.balance = 0.1;
  const Balance balance =
      balance_of(rule("deepseek_v3"), objective, scores(), experts({2, 3, 2, 3}), 1);
  EXPECT_NEAR(balance.sum, 2 * 0.1 * 1.25, 1e-12);  // as many times as tokens
}

// Equations 23-31 of DeepSeek-V2, on scores that are shares already: the chosen count. f as above;
// f' = (1.5, 0.5); f'' = 2 / (1 * 2) * (2, 1); P' = (0.75, 0.25).
TEST(Balance, OfExpertsGroupsAndTrafficInV2) {
  const at::Tensor shares = scores().div(scores().sum({1}, true));
  const auto loss = [&](Objective objective) {
    return balance_of(rule("deepseek_v2"), objective, shares, experts({0, 1, 1, 3}), 1).sum / 2;
  };
  EXPECT_NEAR(loss({.balance = 1}), 1.25, 1e-12);
  EXPECT_NEAR(loss({.device_balance = 1}), 1.5 * 0.75 + 0.5 * 0.25, 1e-12);
  EXPECT_NEAR(loss({.communication_balance = 1}), 2 * 0.75 + 1 * 0.25, 1e-12);
}

}  // namespace
}  // namespace ciuic::core::testing
