// SPDX-License-Identifier: MIT
#include "core/train/text_windows.h"

#include <vector>

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

TEST(TextWindows, EachTargetIsScoredOnce) {
  for (int64_t tokens = 2; tokens < 30; ++tokens) {
    for (int64_t sequence = 1; sequence < 12; ++sequence) {
      for (int64_t stride = 1; stride <= sequence; ++stride) {
        const TextWindows windows(tokens, sequence, stride);
        std::vector<int> scored(static_cast<size_t>(tokens), 0);
        for (int64_t i = 0; i < windows.count(); ++i) {
          const TextWindow w = windows.at(i);
          ASSERT_GT(w.length, w.seen);
          ASSERT_LE(w.length, sequence);
          for (int64_t at = w.seen; at < w.length; ++at) {
            ++scored[static_cast<size_t>(w.begin + at + 1)];
          }
        }
        EXPECT_EQ(scored[0], 0);
        for (size_t t = 1; t < scored.size(); ++t) {
          ASSERT_EQ(scored[t], 1) << tokens << " tokens, " << sequence << ", " << stride;
        }
      }
    }
  }
}

TEST(TextWindows, OverlapsGiveContext) {
  const TextWindows windows(101, 40, 10);
  EXPECT_EQ(windows.count(), 7);
  const TextWindow second = windows.at(1);
  EXPECT_EQ(second.begin, 10);
  EXPECT_EQ(second.length, 40);
  EXPECT_EQ(second.seen, 30);
}

}  // namespace
}  // namespace ciuic::core
