// SPDX-License-Identifier: MIT
// The whole model: against autograd in f64, and what the trainer relies on.
#include "core/model/model.h"

#include <gtest/gtest.h>

#include <ATen/ops/where.h>

#include "core/model/parameter_specs.h"
#include "tests/model/oracle.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

// f64 sums of a few hundred terms in another order than the oracle's.
constexpr double kDoubleTolerance = 1e-11;

at::Tensor targets_with_gaps(int64_t batch, int64_t tokens, int64_t vocab_size) {
  at::Tensor targets = some_tokens(batch, tokens, vocab_size, 2);
  targets.select(0, 0).narrow(0, 1, 2).fill_(kIgnoredTarget);
  return targets;
}

void expect_gradients(const TestParameters& parameters, const Named& expected, double factor, double tolerance) {
  for (const ParameterSpec& spec : parameters.specs()) {
    EXPECT_LT(relative_error(parameters.gradient(spec.name), expected.at(spec.name).mul(factor)), tolerance)
        << spec.name;
  }
}

struct Variant {
  const char* name;
  void (*change)(ModelConfig&);
};

class WholeModel : public ::testing::TestWithParam<Variant> {};

TEST_P(WholeModel, AgreesWithAutogradInDouble) {
  ModelConfig config = small_config();
  GetParam().change(config);
  Model model(config, at::kDouble, at::kCPU);
  TestParameters parameters(config, at::kDouble);
  Named biases;
  for (const auto& [name, bias] : model.expert_biases()) {
    bias.copy_(normal(name, {config.n_routed_experts}, 0.2));
    biases[name] = bias;
  }
  const at::Tensor tokens = some_tokens(2, 9, config.vocab_size);
  const at::Tensor targets = targets_with_gaps(2, 9, config.vocab_size);

  const Oracle oracle(config, leaves(parameters.values()), biases);
  const at::Tensor logits = oracle.logits(tokens);
  const at::Tensor loss = oracle.loss_sum(logits, targets);
  Named inputs;
  for (const ParameterSpec& spec : parameters.specs()) {
    inputs[spec.name] = oracle[spec.name];
  }
  const Named expected = gradients(loss, inputs);

  EXPECT_LT(relative_error(run_logits(model, parameters, tokens), logits), kDoubleTolerance);
  const double seed = 0.25;
  const double loss_sum = run_step(model, parameters, tokens, targets, seed, /*overwrite=*/true);
  EXPECT_NEAR(loss_sum, loss.item<double>(), 1e-10);
  expect_gradients(parameters, expected, seed, kDoubleTolerance);

  // A second micro-batch, the same again, adds up.
  run_step(model, parameters, tokens, targets, seed, /*overwrite=*/false);
  expect_gradients(parameters, expected, 2 * seed, kDoubleTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Variants, WholeModel,
    ::testing::Values(Variant{"Default", [](ModelConfig&) {}}, Variant{"OneGroup", [](ModelConfig& c) { c.n_group = c.topk_group = 1; }},
                      Variant{"NoSharedExperts", [](ModelConfig& c) { c.n_shared_experts = 0; }},
                      Variant{"TwoSharedExperts", [](ModelConfig& c) { c.n_shared_experts = 2; }},
                      Variant{"WeightsNotNormalised", [](ModelConfig& c) { c.norm_topk_prob = false; }},
                      Variant{"OneExpertPerToken", [](ModelConfig& c) { c.num_experts_per_tok = 1, c.norm_topk_prob = false; }},
                      Variant{"ValuesAsWideAsQueries", [](ModelConfig& c) { c.v_head_dim = 12; }},
                      Variant{"ValuesWiderThanQueries", [](ModelConfig& c) { c.v_head_dim = 16; }},
                      Variant{"NoDenseLayers", [](ModelConfig& c) { c.first_k_dense_replace = 0; }},
                      Variant{"OnlyDenseLayers", [](ModelConfig& c) { c.first_k_dense_replace = 3; }}),
    [](const auto& variant) { return variant.param.name; });

}  // namespace
}  // namespace ciuic::core::testing
