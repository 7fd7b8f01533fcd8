// SPDX-License-Identifier: MIT
#include "core/bench/module_flops.h"

#include <numeric>

#include <gtest/gtest.h>

#include "core/model/parameter_specs.h"
#include "core/model/presets.h"
#include "tests/bench/by_part.h"

namespace ciuic::core {
namespace {

constexpr int64_t kTokens = 256;

TEST(ModuleFlops, AddUpToTheModels) {
  for (const std::string& name : preset_names()) {
    const ModelConfig config = preset(name);
    const auto flops = module_flops(config, kTokens);
    const double sum = std::accumulate(flops.begin(), flops.end(), 0.0);
    const double expected = flops_per_token(config, kTokens);
    EXPECT_NEAR(sum, expected, 1e-9 * expected) << name;  // sums of doubles in another order
  }
}

TEST(ModuleFlops, AddUpWithPredictionLayersAndATiedHead) {
  ModelConfig config = preset("tiny");
  config.num_nextn_predict_layers = 2;
  config.tie_word_embeddings = true;
  const auto flops = module_flops(config, kTokens);
  const double expected = flops_per_token(config, kTokens);
  EXPECT_NEAR(std::accumulate(flops.begin(), flops.end(), 0.0), expected, 1e-9 * expected);
  EXPECT_EQ(of(flops, Part::Prediction), 6.0 * 2 * 2 * config.hidden_size * config.hidden_size);
}

TEST(ModuleFlops, OfSmallByHand) {
  const ModelConfig c = preset("small");
  const auto flops = module_flops(c, kTokens);
  EXPECT_EQ(of(flops, Part::Experts),
            6.0 * 7 * 4 * 3 * 384 * 160);  // 7 mixtures, 4 experts a token
  EXPECT_EQ(of(flops, Part::Router), 6.0 * 7 * 16 * 384);
  EXPECT_EQ(of(flops, Part::DenseFeedForward), 6.0 * (3 * 384 * 1024 + 7 * 3 * 384 * 160));
  EXPECT_EQ(of(flops, Part::Loss), 6.0 * 259 * 384);
  EXPECT_EQ(of(flops, Part::Embedding), 0);
}

}  // namespace
}  // namespace ciuic::core
