// SPDX-License-Identifier: MIT
//
// reproducible = "any_world": the same bits at 1, 2 and 4 ranks, for every strategy, whichever rank
// holds which slots; norms too. Gradients span ten decades, so every other order of additions shows.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "sharding_case.h"

namespace ciuic::testing {
namespace {

double wild_gradient(uint64_t step, uint32_t slot, uint64_t param, int64_t i) {
  const double x =
      static_cast<double>(step * 131 + slot * 37 + param * 11) + static_cast<double>(i);
  return std::sin(x) * std::pow(10.0, static_cast<double>((slot * 7 + step) % 10) - 5);
}

ShardingCase slots_on(int world, uint32_t slots, const std::string& strategy) {
  ShardingCase c;
  c.strategy = strategy;
  c.world = world;
  c.micro_batches = slots / static_cast<uint32_t>(world);
  c.model = odd_model(kBF16);
  c.step_flags = CIUIC_STEP_ANY_WORLD;
  c.gradient = wild_gradient;
  return c;
}

void expect_same(const ShardingCase& c, const Outcome& expected) {
  const auto got = run_case(c);
  EXPECT_TRUE(got->state == expected.state)
      << c.text() << ": state differs by " << difference(got->state, expected.state);
  EXPECT_EQ(got->norms, expected.norms) << c.text();
  EXPECT_EQ(got->values[0], expected.values[0]) << c.text();
}

TEST(ShardingAnyWorld, SameBitsAtEveryWorldAndStage) {
  for (const uint32_t slots : {4U, 8U, 12U, 20U}) {
    const auto alone = run_case(slots_on(1, slots, "ddp"));
    for (const char* strategy : {"ddp", "zero1", "zero2", "zero3"}) {
      for (const int world : {1, 2, 4}) {
        expect_same(slots_on(world, slots, strategy), *alone);
      }
    }
  }
}

TEST(ShardingAnyWorld, AnyRankMayHoldAnySubtree) {
  const auto alone = run_case(slots_on(1, 8, "ddp"));
  for (const char* strategy : {"ddp", "zero1", "zero2", "zero3"}) {
    ShardingCase c = slots_on(4, 8, strategy);
    c.slot_of_rank = {0, 2, 1, 3};  // the rank's number with its bits reversed
    expect_same(c, *alone);
    c.slot_of_rank = {3, 1, 0, 2};
    expect_same(c, *alone);
  }
}

TEST(ShardingAnyWorld, HybridGroupsToo) {
  const auto alone = run_case(slots_on(1, 8, "ddp"));
  for (const char* strategy : {"zero1", "zero2", "zero3"}) {
    ShardingCase c = slots_on(4, 8, strategy);
    c.options = {{"shard_ranks", int64_t{2}}};
    c.slot_of_rank = {0, 2, 1, 3};
    expect_same(c, *alone);
  }
}

TEST(ShardingAnyWorld, BucketsAndLateTransportsChangeNothing) {
  const auto alone = run_case(slots_on(1, 8, "ddp"));
  for (const char* strategy : {"ddp", "zero1", "zero2", "zero3"}) {
    for (const int64_t bucket : {int64_t{1}, int64_t{256}}) {
      ShardingCase c = slots_on(2, 8, strategy);
      c.options = {{"bucket_size", bucket}};
      c.delay_ms = 1;
      expect_same(c, *alone);
    }
  }
}

TEST(ShardingAnyWorld, SlotsWithoutDataCountAsZeros) {
  // A slot that is idle is idle wherever it is: rank-local idleness is tested by dropping its uses.
  const auto idle = [](uint64_t step, uint32_t slot, uint64_t param, int64_t i) {
    return slot % 3 == 1 ? 0.0 : wild_gradient(step, slot, param, i);
  };
  ShardingCase one = slots_on(1, 8, "ddp");
  one.gradient = idle;
  const auto alone = run_case(one);
  for (const char* strategy : {"ddp", "zero3"}) {
    ShardingCase c = slots_on(4, 8, strategy);
    c.gradient = idle;
    expect_same(c, *alone);
  }
}

TEST(ShardingAnyWorld, TheOrdinaryOrderIsAnother) {
  // Were the bits equal without the tree, the tests above would show nothing.
  ShardingCase c = slots_on(1, 8, "ddp");
  c.step_flags = 0;
  const auto alone = run_case(c);
  ShardingCase two = slots_on(2, 8, "ddp");
  two.step_flags = 0;
  EXPECT_FALSE(run_case(two)->state == alone->state);
}

// ---- what it refuses ----

Error begin_error(
    int world, uint32_t micro_batches, const std::vector<ParamSpec>& model,
    const std::function<void(RankGroup&)>& prepare = [](RankGroup&) {}) {
  RankGroup ranks(world);
  prepare(ranks);
  return error_of([&] {
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, load_plugin("zero2"), load_plugin("adamw"), model);
      d.begin({}, micro_batches, CIUIC_STEP_ANY_WORLD);
    });
  });
}

TEST(ShardingAnyWorld, RefusesThreeRanks) {
  const Error e = begin_error(3, 2, odd_model());
  EXPECT_EQ(e.code(), CIUIC_UNIMPLEMENTED);
  EXPECT_NE(std::string(e.what()).find("1, 2, 4, 8, ... ranks"), std::string::npos) << e.what();
}

TEST(ShardingAnyWorld, RefusesGroupsThatDoNotHaveAllSlots) {
  std::vector<ParamSpec> model{{"expert", {4}, 0}};
  model[0].group = "expert_data";
  const Error e = begin_error(4, 1, model, [](RankGroup& ranks) {
    ranks.add_group("expert_data", {{0, 2}, {1, 3}});
  });
  EXPECT_EQ(e.code(), CIUIC_UNIMPLEMENTED);
  EXPECT_NE(std::string(e.what()).find("experts over ranks"), std::string::npos) << e.what();
}

TEST(ShardingAnyWorld, RefusesTwoRanksWithTheSameSlots) {
  RankGroup ranks(2);
  const Error e = error_of([&] {
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, load_plugin("zero1"), load_plugin("adamw"), odd_model());
      d.begin({}, 2, CIUIC_STEP_ANY_WORLD, 0);
    });
  });
  EXPECT_EQ(e.code(), CIUIC_INVALID);
  EXPECT_NE(std::string(e.what()).find("is taken"), std::string::npos) << e.what();
}

}  // namespace
}  // namespace ciuic::testing
