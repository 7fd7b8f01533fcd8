// SPDX-License-Identifier: MIT
#include "plugins/communicator/shm/cores.h"

#include <gtest/gtest.h>

namespace ciuic::plugins::shm {
namespace {

TEST(ShmCores, EachRankNeedsOneOfItsOwn) {
  EXPECT_TRUE(have_a_core_each({"0/8", "1/8"}));
  EXPECT_TRUE(have_a_core_each({"0,1/8", "0/8"})) << "the first one can take core 1";
  EXPECT_FALSE(have_a_core_each({"0/8", "0/8", "1/8"}));
  EXPECT_FALSE(have_a_core_each({"0,1/8", "0,1/8", "0,1/8", "0,1/8"}));
}

TEST(ShmCores, QuotaOfTheControlGroupCounts) { EXPECT_FALSE(have_a_core_each({"0/1", "1/1"})); }

TEST(ShmCores, OwnOnesAreKnown) { EXPECT_TRUE(have_a_core_each({own_cores()})) << own_cores(); }

}  // namespace
}  // namespace ciuic::plugins::shm
