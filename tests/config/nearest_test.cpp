// SPDX-License-Identifier: MIT
#include "core/config/nearest.h"

#include <array>

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

constexpr std::array<std::string_view, 4> kWords{"steps", "gradient_clip_norm", "to",
                                                 "sequence_tokens"};

TEST(Nearest, CountsEditsAndSwapsOfNeighbours) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("stpes", "steps"), 1u);
}

TEST(Nearest, SuggestsWhatIsClose) {
  EXPECT_EQ(nearest("stpes", kWords), "steps");
  EXPECT_EQ(nearest("gradient_clipp1ng", kWords), "gradient_clip_norm");
  EXPECT_EQ(nearest("sequence_token", kWords), "sequence_tokens");
}

TEST(Nearest, PatternsAreEditedButForWhatStarsStandFor) {
  EXPECT_EQ(pattern_distance("*norm*", "model.norm.weight"), 0u);
  EXPECT_EQ(pattern_distance("*nrom*", "model.norm.weight"), 2u);
  EXPECT_EQ(pattern_distance("model.?orm.weight", "model.norm.weight"), 0u);
  EXPECT_EQ(pattern_distance("", "abc"), 3u);
  EXPECT_EQ(pattern_distance("*", ""), 0u);
  EXPECT_EQ(pattern_distance("a*c", "b"), 2u);
}

TEST(Nearest, SuggestsNothingForAStranger) {
  EXPECT_EQ(nearest("banana", kWords), "");
  EXPECT_EQ(nearest("xy", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest(std::string(100'000, 'a'), kWords), "");
  EXPECT_EQ(suggestion("stpes", kWords), "; did you mean steps?");
}

}  // namespace
}  // namespace ciuic::core
