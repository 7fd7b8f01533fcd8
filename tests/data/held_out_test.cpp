// SPDX-License-Identifier: MIT
#include "core/data/held_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(HeldOut, RoundsToTheNearestAndTakesAtLeastOne) {
  EXPECT_EQ(held_out_rows(100, 0.02), 2);
  EXPECT_EQ(held_out_rows(100, 0.29), 29);  // 0.29 * 100 is a hair below 29
  EXPECT_EQ(held_out_rows(150, 0.02), 3);
  EXPECT_EQ(held_out_rows(125, 0.02), 3);  // 2.5
  EXPECT_EQ(held_out_rows(10, 0.02), 1);
  EXPECT_EQ(held_out_rows(10, 0), 0);
  EXPECT_EQ(held_out_rows(0, 0.5), 0);
  EXPECT_EQ(held_out_rows(10, 1), 10);
}

TEST(HeldOut, ValidationRowsAreSpreadEvenly) {
  EXPECT_THAT(spread_rows(90, 10, 4), ElementsAre(90, 92, 95, 97));
  EXPECT_THAT(spread_rows(90, 3, 64), ElementsAre(90, 91, 92));
  EXPECT_THAT(spread_rows(90, 0, 64), IsEmpty());
  EXPECT_THAT(spread_rows(90, 5, 0), IsEmpty());
  const auto many = spread_rows(0, int64_t{1} << 60, 1000);
  EXPECT_EQ(many.back(), static_cast<int64_t>((__int128{999} << 60) / 1000));
}

}  // namespace
}  // namespace ciuic::core
