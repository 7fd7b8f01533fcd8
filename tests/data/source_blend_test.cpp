// SPDX-License-Identifier: MIT
#include "core/data/source_blend.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

using Sources = std::vector<SourceBlend::Source>;

TEST(SourceBlend, EachSourceCountsItsSamplesWithoutAGap) {
  const SourceBlend blend(Sources{{"a", 0.7}, {"b", 0.2}, {"c", 0.1}});
  std::map<size_t, uint64_t> next;
  for (uint64_t sample = 0; sample < 200000; ++sample) {
    const auto pick = blend.pick(sample);
    ASSERT_EQ(pick.index, next[pick.source]++) << sample;
  }
}

TEST(SourceBlend, SharesAreRightEarlyAndLate) {
  const Sources sources{{"a", 7}, {"b", 2}, {"c", 1}, {"d", 0.003}};
  const SourceBlend blend(sources);
  std::vector<double> drawn(sources.size());
  for (uint64_t sample = 0; sample < 3 * uint64_t{SourceBlend::kPeriod}; ++sample) {
    drawn[blend.pick(sample).source] += 1;
    for (size_t k = 0; k < sources.size(); ++k) {
      const double wanted = sources[k].weight / 10.003 * static_cast<double>(sample + 1);
      // One sample, and what rounding a share to 1/65536 makes of so many.
      ASSERT_LE(std::abs(drawn[k] - wanted), 2 + static_cast<double>(sample) / 65536) << sample;
    }
  }
  EXPECT_EQ(blend.end(), UINT64_MAX);
}

TEST(SourceBlend, ASourceLeavesWhenItsPassesAreUsedUp) {
  const Sources sources{{"a", 1, 10}, {"b", 1, -1}, {"c", 2, 100000}};
  const SourceBlend blend(sources);
  std::map<size_t, uint64_t> next;
  for (uint64_t sample = 0; sample < 400000; ++sample) {
    const auto pick = blend.pick(sample);
    ASSERT_EQ(pick.index, next[pick.source]++) << sample;
  }
  EXPECT_EQ(next[0], 10u);
  EXPECT_EQ(next[2], 100000u);
}

TEST(SourceBlend, BehindTheEndIsAnError) {
  const SourceBlend blend(Sources{{"a", 1, 3}, {"b", 5, 70000}});
  EXPECT_EQ(blend.end(), 70003u);
  EXPECT_NO_THROW((void)blend.pick(70002));
  EXPECT_THROW((void)blend.pick(70003), Failure);
}

TEST(SourceBlend, ManySmallWeightsStillGetOne) {
  Sources sources{{"big", 1e9}};
  for (int i = 0; i < 63; ++i) {
    sources.push_back({"small", 1e-9});
  }
  const SourceBlend blend(sources);
  std::vector<int> drawn(sources.size());
  for (uint64_t sample = 0; sample < SourceBlend::kPeriod; ++sample) {
    ++drawn[blend.pick(sample).source];
  }
  for (size_t k = 1; k < drawn.size(); ++k) {
    EXPECT_EQ(drawn[k], 1);
  }
}

}  // namespace
}  // namespace ciuic::core
