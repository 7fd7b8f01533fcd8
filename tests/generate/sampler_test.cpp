// SPDX-License-Identifier: MIT
#include "core/generate/sampler.h"

#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

const std::vector<float> kLogits = {1.0F, 3.0F, 2.0F, 3.0F, -1.0F};
const std::vector<int64_t> kAll = {0, 1, 2, 3, 4};
constexpr int kDraws = 20000;

std::map<int64_t, double> frequencies(const std::vector<float>& logits, const Sampling& sampling) {
  Sampler sampler(kAll, 7);
  std::map<int64_t, double> seen;
  for (int i = 0; i < kDraws; ++i) {
    seen[sampler.pick(logits, sampling)] += 1.0 / kDraws;
  }
  return seen;
}

TEST(Sampler, TemperatureZeroTakesTheMostLikelyAndOfEqualsTheFirst) {
  Sampler sampler(kAll, 1);
  EXPECT_EQ(sampler.pick(kLogits, {.temperature = 0}), 1);
  Sampler others({0, 2, 4}, 1);
  EXPECT_EQ(others.pick(kLogits, {.temperature = 0}), 2);
}

TEST(Sampler, FrequenciesAreThoseOfTheSoftmax) {
  const double temperature = 0.7;
  double sum = 0;
  for (const float logit : kLogits) {
    sum += std::exp(logit / temperature);
  }
  const auto seen = frequencies(kLogits, {.temperature = temperature});
  for (const auto& [token, frequency] : seen) {
    const double p = std::exp(kLogits[static_cast<size_t>(token)] / temperature) / sum;
    EXPECT_NEAR(frequency, p, 5 * std::sqrt(p / kDraws)) << token;  // five standard deviations
  }
}

TEST(Sampler, TopKLeavesTheMostLikely) {
  const auto seen = frequencies(kLogits, {.temperature = 5, .top_k = 3});
  EXPECT_EQ(seen.size(), 3U);
  EXPECT_TRUE(seen.contains(1) && seen.contains(2) && seen.contains(3));
  EXPECT_EQ(frequencies(kLogits, {.temperature = 5, .top_k = 1}).size(), 1U);
  EXPECT_EQ(frequencies(kLogits, {.temperature = 5, .top_k = 99}).size(), 5U);
}

TEST(Sampler, TopPLeavesTheFewestWithThatProbability) {
  const std::vector<float> half = {std::log(0.5F), std::log(0.25F), std::log(0.125F),
                                   std::log(0.0625F), std::log(0.0625F)};
  EXPECT_EQ(frequencies(half, {.temperature = 1, .top_p = 0.4}).size(), 1U);
  EXPECT_EQ(frequencies(half, {.temperature = 1, .top_p = 0.6}).size(), 2U);
  EXPECT_EQ(frequencies(half, {.temperature = 1, .top_p = 0.8}).size(), 3U);
  EXPECT_EQ(frequencies(half, {.temperature = 1, .top_p = 1e-9}).size(), 1U);
  const auto both = frequencies(half, {.temperature = 1, .top_k = 2, .top_p = 0.99});
  EXPECT_EQ(both.size(), 2U);
}

TEST(Sampler, ASeedRepeatsItself) {
  const auto draw = [](uint64_t seed) {
    Sampler sampler(kAll, seed);
    std::vector<int64_t> tokens;
    for (int i = 0; i < 50; ++i) {
      tokens.push_back(sampler.pick(kLogits, {.temperature = 2}));
    }
    return tokens;
  };
  EXPECT_EQ(draw(3), draw(3));
  EXPECT_NE(draw(3), draw(4));
}

TEST(Sampler, RefusesLogitsThatAreNotNumbers) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  Sampler sampler({0, 1}, 1);
  const std::vector<float> all = {kNan, kNan};
  const std::vector<float> infinite = {kInfinite, 0};
  EXPECT_THROW(sampler.pick(all, {}), Failure);
  EXPECT_THROW(sampler.pick(infinite, {}), Failure);
}

}  // namespace
}  // namespace ciuic::core
