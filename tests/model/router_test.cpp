// SPDX-License-Identifier: MIT
// The router's rule: known vectors, and the CPU kernel against LibTorch's operations.
#include "core/model/router.h"

#include <cmath>

#include <ATen/ops/full.h>
#include <ATen/ops/logit.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "core/model/kernels/expert_choice.h"
#include "tests/model/oracle.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

RouterRule rule(int64_t experts, int64_t chosen, int64_t groups = 1, int64_t kept = 1,
                double scaling = 2.5) {
  ModelConfig c;
  c.n_routed_experts = experts;
  c.num_experts_per_tok = chosen;
  c.n_group = groups;
  c.topk_group = kept;
  c.routed_scaling_factor = scaling;
  return RouterRule(c);
}

at::Tensor row(std::vector<double> values, at::ScalarType dtype = at::kFloat) {
  return at::tensor(values, at::TensorOptions().dtype(at::kDouble)).to(dtype);
}

// Both implementations of one choice.
std::vector<Routing> route(const RouterRule& r, const at::Tensor& scores_E,
                           const at::Tensor& bias_E) {
  const at::Tensor logits = scores_E.logit().unsqueeze(0);
  return {kernels::cpu::choose_experts(r, logits, bias_E, false),
          kernels::reference::choose_experts(r, logits, bias_E, false)};
}

std::vector<int64_t> experts_of(const Routing& routing) {
  const at::Tensor experts = routing.experts_NK.to(at::kLong).contiguous();
  const auto* first = experts.const_data_ptr<int64_t>();
  return {first, first + experts.numel()};
}

std::vector<double> weights_of(const Routing& routing) {
  const at::Tensor weights = routing.weights_NK.to(at::kDouble).contiguous();
  const auto* first = weights.const_data_ptr<double>();
  return {first, first + weights.numel()};
}

TEST(Router, FieldB062BiasSteersTheChoiceButNotTheWeights) {
  for (const Routing& r : route(rule(3, 2), row({0.9, 0.8, 0.1}), row({0, 0, 5}))) {
    EXPECT_EQ(experts_of(r), (std::vector<int64_t>{2, 0}));
    EXPECT_NEAR(weights_of(r)[0], 0.25, 1e-6);
    EXPECT_NEAR(weights_of(r)[1], 2.25, 1e-6);
  }
}

TEST(Router, FieldB062TinyScoresUnderABiasOf12KeepTheirWeights) {
  const at::Tensor bias = row({12, 12, 12, 0});
  const at::Tensor logits = row({-18.0, -18.5, -19.0, 3.0}).unsqueeze(0);  // scores about 1e-8
  for (const Routing& r : {kernels::cpu::choose_experts(rule(4, 2), logits, bias, false),
                           kernels::reference::choose_experts(rule(4, 2), logits, bias, false)}) {
    const std::vector<double> w = weights_of(r);
    EXPECT_NEAR(w[0] + w[1], 2.5, 1e-5);
    for (size_t k = 0; k < 2; ++k) {
      const double s = 1 / (1 + std::exp(-logits[0][experts_of(r)[k]].item<double>()));
      const double other = 1 / (1 + std::exp(-logits[0][experts_of(r)[1 - k]].item<double>()));
      EXPECT_NEAR(w[k], 2.5 * s / (s + other), 1e-5);
    }
  }
}

TEST(Router, FieldB063MaskedGroupsStayOutWhenScoresAreNegative) {
  const at::Tensor scores = row({0.5, 0.5, 0.5, 0.5});
  for (const Routing& r : route(rule(4, 2, 2, 1), scores, row({-0.7, -0.8, -1.0, -1.1}))) {
    EXPECT_EQ(experts_of(r), (std::vector<int64_t>{0, 1}));
  }
}

TEST(Router, FieldB063AGroupIsJudgedByItsTwoBest) {
  const at::Tensor scores = row({0.5, 0.5, 0.5, 0.5});
  for (const Routing& r : route(rule(4, 2, 2, 1), scores, row({0.4, -0.5, 0.1, 0.0}))) {
    EXPECT_EQ(experts_of(r), (std::vector<int64_t>{2, 3}));
  }
}

RouterRule softmax_rule(int64_t experts, int64_t chosen, int64_t groups, int64_t kept,
                        double scaling) {
  ModelConfig c = defaults_of("deepseek_v2");
  c.topk_method = "group_limited_greedy";
  c.n_routed_experts = experts;
  c.num_experts_per_tok = chosen;
  c.n_group = groups;
  c.topk_group = kept;
  c.routed_scaling_factor = scaling;
  return RouterRule(c);
}

// Its two best together would favour the second group; weights are scaled and not normalised.
TEST(Router, AGroupOfV2IsJudgedByItsBest) {
  const RouterRule r = softmax_rule(6, 2, 3, 1, 16);
  const at::Tensor logits = row({0.30, 0.05, 0.25, 0.24, 0.15, 0.01}).log().unsqueeze(0);
  for (const Routing& routing :
       {kernels::cpu::choose_experts(r, logits, at::zeros({6}), false),
        kernels::reference::choose_experts(r, logits, at::zeros({6}), false)}) {
    EXPECT_EQ(experts_of(routing), (std::vector<int64_t>{0, 1}));
    EXPECT_NEAR(weights_of(routing)[0], 16 * 0.30, 1e-5);
    EXPECT_NEAR(weights_of(routing)[1], 16 * 0.05, 1e-5);
  }
}

// DeepSeek-V2 masks with 0 what a score that underflowed to 0 then ties with.
TEST(Router, FieldB063MaskedGroupsStayOutWhenScoresAreZero) {
  const RouterRule r = softmax_rule(4, 2, 2, 1, 1);
  const at::Tensor logits = row({-200, -200, 0, -200}).unsqueeze(0);
  for (const Routing& routing :
       {kernels::cpu::choose_experts(r, logits, at::zeros({4}), false),
        kernels::reference::choose_experts(r, logits, at::zeros({4}), false)}) {
    EXPECT_EQ(experts_of(routing), (std::vector<int64_t>{2, 3}));
  }
}

TEST(Router, EqualScoresGoToTheLowerExpert) {
  for (const Routing& r : route(rule(6, 3, 3, 2), at::full({6}, 0.5), at::zeros({6}))) {
    EXPECT_EQ(experts_of(r), (std::vector<int64_t>{0, 1, 2}));
  }
}

TEST(Router, EveryTokenGetsDifferentExpertsWhateverTheScores) {
  const double inf = std::numeric_limits<double>::infinity();
  const at::Tensor logits =
      row({std::nan(""), -inf, inf, 0, -inf, std::nan(""), -inf, 1}).unsqueeze(0);
  const Routing r =
      kernels::cpu::choose_experts(rule(8, 4, 4, 2), logits, at::full({8}, -1e30), false);
  std::vector<int64_t> experts = experts_of(r);
  std::sort(experts.begin(), experts.end());
  EXPECT_EQ(std::unique(experts.begin(), experts.end()), experts.end());
  EXPECT_GE(experts.front(), 0);
  EXPECT_LT(experts.back(), 8);
}

// 10 thousand tokens with biases up to +-12, as the conformance set asks: kernel, reference and a
// port of transformers.
TEST(Router, AgreesWithTheReferenceUnderLargeBiases) {
  ModelConfig config = small_config();
  const RouterRule r(config);
  const at::Tensor logits = normal("logits", {10000, 8}, 2.0, at::kDouble);
  const at::Tensor bias = normal("bias", {8}, 6.0, at::kFloat).clamp(-12, 12);
  const Routing fast = kernels::cpu::choose_experts(r, logits, bias, false);
  const Routing plain = kernels::reference::choose_experts(r, logits, bias, false);
  EXPECT_TRUE(same_bits(fast.experts_NK, plain.experts_NK));
  EXPECT_LT(relative_error(fast.weights_NK, plain.weights_NK), 1e-14);

  const Oracle oracle(config, {}, {{"gate.e_score_correction_bias", bias}});
  EXPECT_TRUE(
      same_bits(fast.experts_NK.to(at::kLong), oracle.chosen_experts(logits.sigmoid(), "")));

  const at::Tensor dweights = normal("dweights", {10000, 3}, 1.0, at::kDouble);
  EXPECT_LT(relative_error(kernels::cpu::choose_experts_backward(r, fast, dweights),
                           kernels::reference::choose_experts_backward(r, plain, dweights)),
            1e-12);
}

}  // namespace
}  // namespace ciuic::core::testing
