// SPDX-License-Identifier: MIT
// The whole model: against autograd in f64, and what the trainer relies on.
#include "core/model/model.h"

#include <cmath>

#include <ATen/ops/sum.h>
#include <gtest/gtest.h>

#include <ciuic/error.hpp>

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

void expect_gradients(const TestParameters& parameters, const Named& expected, double factor,
                      double tolerance) {
  for (const ParameterSpec& spec : parameters.specs()) {
    EXPECT_LT(relative_error(parameters.gradient(spec.name), expected.at(spec.name).mul(factor)),
              tolerance)
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
    ::testing::Values(
        Variant{"Default", [](ModelConfig&) {}},
        Variant{"OneGroup", [](ModelConfig& c) { c.n_group = c.topk_group = 1; }},
        Variant{"NoSharedExperts", [](ModelConfig& c) { c.n_shared_experts = 0; }},
        Variant{"TwoSharedExperts", [](ModelConfig& c) { c.n_shared_experts = 2; }},
        Variant{"WeightsNotNormalised", [](ModelConfig& c) { c.norm_topk_prob = false; }},
        Variant{"OneExpertPerToken",
                [](ModelConfig& c) { c.num_experts_per_tok = 1, c.norm_topk_prob = false; }},
        Variant{"ValuesAsWideAsQueries", [](ModelConfig& c) { c.v_head_dim = 12; }},
        Variant{"ValuesWiderThanQueries", [](ModelConfig& c) { c.v_head_dim = 16; }},
        Variant{"NoDenseLayers", [](ModelConfig& c) { c.first_k_dense_replace = 0; }},
        Variant{"OnlyDenseLayers", [](ModelConfig& c) { c.first_k_dense_replace = 3; }}),
    [](const auto& variant) { return variant.param.name; });

// f32 against f64: rounding of some hundred operations in a row. LibTorch's own f32 autograd is as
// far away.
TEST(Model, FloatStaysCloseToDouble) {
  const ModelConfig config = small_config();
  const at::Tensor tokens = some_tokens(2, 40, config.vocab_size);
  const at::Tensor targets = targets_with_gaps(2, 40, config.vocab_size);
  Model exact(config, at::kDouble, at::kCPU);
  TestParameters exact_parameters(config, at::kDouble);
  const double exact_loss = run_step(exact, exact_parameters, tokens, targets, 1, true);
  Model model(config, at::kFloat, at::kCPU);
  TestParameters parameters(config, at::kFloat);
  EXPECT_NEAR(run_step(model, parameters, tokens, targets, 1, true), exact_loss, 1e-6 * exact_loss);
  EXPECT_TRUE(same_bits(model.expert_loads(), exact.expert_loads()));
  for (const ParameterSpec& spec : parameters.specs()) {
    EXPECT_LT(relative_error(parameters.gradient(spec.name), exact_parameters.gradient(spec.name)),
              5e-5)
        << spec.name;
  }
}

// bf16 has 8 bits; a loss of some hundred tokens averages its errors, a gradient much less. Near
// ties may route a token elsewhere, so gradients are compared as a whole.
TEST(Model, Bfloat16StaysCloseToFloat) {
  const ModelConfig config = small_config();
  const at::Tensor tokens = some_tokens(2, 100, config.vocab_size);
  const at::Tensor targets = some_tokens(2, 100, config.vocab_size, 2);
  Model wide(config, at::kFloat, at::kCPU);
  TestParameters wide_parameters(config, at::kFloat, 0.2);
  const double wide_loss = run_step(wide, wide_parameters, tokens, targets, 1, true);
  Model model(config, at::kBFloat16, at::kCPU);
  TestParameters parameters(config, at::kBFloat16, 0.2);
  EXPECT_NEAR(run_step(model, parameters, tokens, targets, 1, true), wide_loss, 5e-3 * wide_loss);
  double difference = 0;
  double size = 0;
  for (const ParameterSpec& spec : parameters.specs()) {
    const at::Tensor& expected = wide_parameters.gradient(spec.name);
    EXPECT_EQ(parameters.gradient(spec.name).scalar_type(), at::kFloat);
    difference += parameters.gradient(spec.name).sub(expected).square().sum().item<double>();
    size += expected.square().sum().item<double>();
  }
  EXPECT_LT(std::sqrt(difference / size), 0.1);
}

TEST(Model, SameInputsGiveTheSameBits) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const ModelConfig config = small_config();
    const at::Tensor tokens = some_tokens(2, 40, config.vocab_size);
    TestParameters first(config, dtype);
    TestParameters second(config, dtype);
    Model model(config, dtype, at::kCPU);
    Model other(config, dtype, at::kCPU);
    EXPECT_EQ(run_step(model, first, tokens, tokens, 1, true),
              run_step(other, second, tokens, tokens, 1, true));
    for (const ParameterSpec& spec : first.specs()) {
      EXPECT_TRUE(same_bits(first.gradient(spec.name), second.gradient(spec.name))) << spec.name;
    }
  }
}

TEST(Model, AddingToZerosEqualsOverwriting) {
  const ModelConfig config = small_config();
  const at::Tensor tokens = some_tokens(2, 20, config.vocab_size);
  Model model(config, at::kFloat, at::kCPU);
  TestParameters written(config, at::kFloat);
  TestParameters added(config, at::kFloat);
  run_step(model, written, tokens, tokens, 1, true);
  run_step(model, added, tokens, tokens, 1, false);
  for (const ParameterSpec& spec : written.specs()) {
    EXPECT_LT(relative_error(added.gradient(spec.name), written.gradient(spec.name)), 1e-6)
        << spec.name;
  }
}

TEST(Model, RefusesWhatDoesNotFit) {
  ModelConfig config = small_config();
  Model model(config, at::kFloat, at::kCPU);
  TestParameters parameters(config, at::kFloat);
  const at::Tensor tokens = some_tokens(1, 4, config.vocab_size);
  EXPECT_THROW(model.embed(parameters.bind_values(0), tokens.add(config.vocab_size)), Error);
  EXPECT_THROW(model.embed(parameters.bind_values(1), tokens), c10::Error);
  const at::Tensor hidden = model.embed(parameters.bind_values(0), tokens);
  EXPECT_THROW(model.head_loss(parameters.bind_values(model.head_unit()), hidden,
                               tokens.sub(config.vocab_size)),
               Error);
  const at::Tensor too_long =
      normal("hidden", {1, config.max_position_embeddings + 1, 24}, 1.0, at::kFloat);
  EXPECT_THROW(model.forward(1, parameters.bind_values(1), too_long, nullptr, Mode::Evaluate),
               Error);
  config.hidden_act = "gelu";
  config.topk_group = 9;
  try {
    Model(config, at::kFloat, at::kCPU);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("hidden_act"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("topk_group"), std::string::npos);
  }
}

}  // namespace
}  // namespace ciuic::core::testing
