// SPDX-License-Identifier: MIT
#include "core/bench/module_traffic.h"

#include <gtest/gtest.h>

#include "core/model/presets.h"
#include "tests/bench/by_part.h"

namespace ciuic::core {
namespace {

constexpr int64_t kTokens = 1024;

/// Weights read twice in `value` bytes and gradients written once; input three times, output twice.
TEST(LeastTraffic, OfSmallByHand) {
  const ModelConfig c = preset("small");  // 8 layers, 7 of them mixtures of 16 experts; hidden 384
  const auto bytes = least_traffic(c, kTokens, {2, 4, 2});
  const double weight = 2 * 2 + 4;
  const double token = 2.0 * kTokens;
  EXPECT_EQ(of(bytes, Part::Experts),
            weight * 7 * 16 * 3 * 384 * 160 + token * 7 * (3 * 384 + 2 * 384));
  EXPECT_EQ(of(bytes, Part::Router), weight * 7 * 16 * 384 + token * 7 * (3 * 384 + 2 * 16));
  EXPECT_EQ(of(bytes, Part::DenseFeedForward),
            weight * (3 * 384 * 1024 + 7 * 3 * 384 * 160) + token * 8 * 5 * 384);
  EXPECT_EQ(of(bytes, Part::Loss), weight * 259 * 384 + token * 3 * 384);
  EXPECT_EQ(of(bytes, Part::Embedding), 259.0 * 384 * (2 + 4) + token * 2 * 384);
}

TEST(LeastTraffic, FewTokensReachFewExperts) {
  ModelConfig c = preset("tiny");
  c.n_routed_experts = 8;
  c.num_experts_per_tok = 2;
  const double all = of(least_traffic(c, 1 << 20, {1, 0, 0}), Part::Experts);
  EXPECT_EQ(of(least_traffic(c, 1, {1, 0, 0}), Part::Experts), all / 4);
  EXPECT_EQ(of(least_traffic(c, 4, {1, 0, 0}), Part::Experts), all);
}

TEST(LeastTraffic, PredictionUsesTheHeadAgain) {
  ModelConfig c = preset("tiny");
  const double once = of(least_traffic(c, kTokens, {}), Part::Loss);
  c.num_nextn_predict_layers = 1;
  EXPECT_EQ(of(least_traffic(c, kTokens, {}), Part::Loss), 2 * once);
}

}  // namespace
}  // namespace ciuic::core
