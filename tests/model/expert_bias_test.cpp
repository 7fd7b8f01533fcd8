// SPDX-License-Identifier: MIT
// Loads of experts and the bias that balances them (field bug B064).
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "core/model/model.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

ModelConfig one_mixture(int64_t experts) {
  ModelConfig config = small_config();
  config.n_routed_experts = experts;
  config.n_group = config.topk_group = 1;
  config.num_experts_per_tok = 2;
  config.num_hidden_layers = 2;
  return config;
}

std::vector<float> bias_after(const std::vector<int64_t>& loads, double rate) {
  Model model(one_mixture(static_cast<int64_t>(loads.size())), at::kFloat, at::kCPU);
  model.update_expert_bias(at::tensor(loads).unsqueeze(0), rate);
  const at::Tensor bias = model.expert_biases()[0].second.contiguous();
  return {bias.const_data_ptr<float>(), bias.const_data_ptr<float>() + bias.numel()};
}

TEST(ExpertBias, FieldB064MovesAgainstTheLoad) {
  EXPECT_EQ(bias_after({10, 2, 4, 0}, 0.001), (std::vector<float>{-0.001f, 0.001f, 0, 0.001f}));
}

TEST(ExpertBias, FieldB064IsDecidedByTheSumOverRanks) {
  EXPECT_EQ(bias_after({10 + 0, 0 + 10}, 0.001), (std::vector<float>{0, 0}));
}

TEST(ExpertBias, LoadsCountTrainingTokensOnly) {
  const ModelConfig config = small_config();
  Model model(config, at::kFloat, at::kCPU);
  TestParameters parameters(config, at::kFloat);
  const at::Tensor tokens = some_tokens(2, 9, config.vocab_size);
  EXPECT_EQ(model.expert_loads().sum().item<int64_t>(), 0);
  run_step(model, parameters, tokens, tokens, 1, true);
  const at::Tensor once = model.expert_loads().clone();
  EXPECT_EQ(once.sizes(), (std::vector<int64_t>{2, 8}));
  EXPECT_TRUE(once.sum({1}).eq(2 * 9 * 3).all().item<bool>());

  run_logits(model, parameters, tokens);  // evaluation
  EXPECT_TRUE(same_bits(model.expert_loads(), once));
  run_step(model, parameters, tokens, tokens, 1, false);
  EXPECT_TRUE(same_bits(model.expert_loads(), once.mul(2)));
  model.reset_expert_loads();
  EXPECT_EQ(model.expert_loads().sum().item<int64_t>(), 0);
}

// Four micro-batches, recomputed, and an evaluation among them: each token counts once.
TEST(ExpertBias, FieldB064CountsEachTokenOnceUnderRecomputation) {
  const ModelConfig config = small_config();
  Model model(config, at::kFloat, at::kCPU);
  TestParameters parameters(config, at::kFloat);
  at::Tensor plain;
  for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
    model.reset_expert_loads();
    for (uint64_t micro = 0; micro < 4; ++micro) {
      const at::Tensor tokens = some_tokens(2, 9, config.vocab_size, micro);
      run_step(model, parameters, tokens, tokens, 1, micro == 0, {{}, {}, {}, recompute});
      run_logits(model, parameters, tokens);
    }
    plain = plain.defined() ? plain : model.expert_loads().clone();
  }
  EXPECT_TRUE(same_bits(model.expert_loads(), plain));
  EXPECT_TRUE(plain.sum({1}).eq(4 * 2 * 9 * 3).all().item<bool>());
}

TEST(ExpertBias, HasTheNamesOfTheFilesAndTakesCopies) {
  Model model(small_config(), at::kFloat, at::kCPU);
  const auto biases = model.expert_biases();
  ASSERT_EQ(biases.size(), 2u);
  EXPECT_EQ(biases[0].first, "model.layers.1.mlp.gate.e_score_correction_bias");
  biases[1].second.fill_(3);
  EXPECT_EQ(model.expert_biases()[1].second.sum().item<float>(), 24);
  EXPECT_EQ(model.expert_biases()[0].second.sum().item<float>(), 0);
}

TEST(ExpertBias, SendsTokensElsewhere) {
  const ModelConfig config = small_config();
  Model model(config, at::kFloat, at::kCPU);
  TestParameters parameters(config, at::kFloat);
  model.expert_biases()[0].second.fill_(-12);
  model.expert_biases()[0].second.narrow(0, 4, 4).fill_(12);
  const at::Tensor tokens = some_tokens(2, 9, config.vocab_size);
  run_step(model, parameters, tokens, tokens, 1, true);
  EXPECT_EQ(model.expert_loads()[0].narrow(0, 0, 4).sum().item<int64_t>(), 0);
}

}  // namespace
}  // namespace ciuic::core::testing
