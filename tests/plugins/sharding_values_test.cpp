// SPDX-License-Identifier: MIT
//
// When values and gradients come and go: what is gathered when, how many units are held, and what is
// under way while a rank goes on.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sharding_case.h"

namespace ciuic::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kElements = 4096;

/// Units of equal size, so that bytes tell units.
std::vector<ParamSpec> even_model(uint32_t units) {
  std::vector<ParamSpec> model;
  for (uint32_t u = 0; u < units; ++u) {
    model.push_back({"layers." + std::to_string(u), {kElements}, u});
  }
  return model;
}

const auto kOne = [](uint64_t, int64_t) { return 1.0; };

TEST(ShardingValues, Zero3GathersTheNextUnitAhead) {
  RankGroup ranks(2);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, load_plugin("zero3"), load_plugin("adamw"), even_model(3));
    const auto started = [&] { return ranks.meeting("data").labels(rank.rank()); };
    const std::vector<ciuic_use> uses = d.schedule(1);
    d.begin(uses, 1);
    (void)d.bind(uses[0]);
    EXPECT_THAT(started(), ElementsAre("values unit 0", "values unit 1"));
    d.drop(uses[0]);
    d.walk(uses[1], kOne);
    EXPECT_THAT(started(), ElementsAre("values unit 0", "values unit 1", "values unit 2"));
    d.walk(uses[2], kOne);  // unit 2 stays for its backward, as does unit 1: two units
    (void)d.bind(uses[3]);
    EXPECT_EQ(started().size(), 3U) << "nothing is gathered twice at the turn";
    d.ready(uses[3]);
    d.drop(uses[3]);
    d.walk(uses[4], kOne);
    d.walk(uses[5], kOne);
    d.end_backward();
    (void)d.stats();
    d.step(0.1);
  });
  EXPECT_THAT(ranks.meeting("data").labels(0),
              ElementsAre("values unit 0", "values unit 1", "values unit 2", "gradients unit 2",
                          "values unit 0", "gradients unit 1", "gradients unit 0"));
}

TEST(ShardingValues, Zero3HoldsTwoUnitsBeyondItsShard) {
  constexpr int64_t kUnit = kElements * 4;
  for (const bool announces : {true, false}) {
    RankGroup ranks(2);
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, load_plugin("zero3"), load_plugin("adamw"), even_model(6));
      const int64_t before = rank.host.live_bytes();
      std::vector<ciuic_use> uses = d.schedule(1);
      uses.resize(6);  // forward only: no gradients
      const std::vector<ciuic_use> none;
      int64_t most = 0;
      d.begin(announces ? uses : none, 1, CIUIC_STEP_EVALUATE);
      for (const ciuic_use& u : uses) {
        (void)d.bind(u);
        most = std::max(most, rank.host.live_bytes() - before);
        d.drop(u);
      }
      EXPECT_LE(most, 2 * kUnit);
      EXPECT_EQ(rank.host.peak_bytes(), before + most);
    });
  }
}

TEST(ShardingValues, Zero3GradientsInFlightAreThoseOfTwoUnits) {
  constexpr int64_t kUnit = kElements * 4;
  for (const char* strategy : {"zero2", "zero3"}) {
    RankGroup ranks(2);
    ranks.meeting("data").execute_late(std::chrono::milliseconds(1));
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, load_plugin(strategy), load_plugin("adamw"), even_model(8));
      const int64_t before = rank.host.live_bytes();
      for (int step = 0; step < 2; ++step) {
        const std::vector<ciuic_use> uses = d.schedule(2);
        d.begin(uses, 2);
        for (const ciuic_use& u : uses) {
          d.walk(u, kOne);
        }
        d.end_backward();
        (void)d.stats();
        d.step(0.1);
      }
      EXPECT_LE(rank.host.peak_bytes() - before, 4 * kUnit)
          << strategy << ": two units of values, two of gradients";
    });
  }
}

TEST(ShardingValues, AScheduleThatLiesIsNotFollowed) {
  RankGroup ranks(2);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, load_plugin("zero3"), load_plugin("adamw"), even_model(4));
    const std::vector<ciuic_use> uses = d.schedule(1);
    d.begin(uses, 1, CIUIC_STEP_EVALUATE);
    d.walk(uses[0], kOne);
    ciuic_use other = uses[3];
    other.index = 1;
    d.walk(other, kOne);
    d.walk(uses[2], kOne);
  });
  EXPECT_THAT(ranks.meeting("data").labels(0),
              ElementsAre("values unit 0", "values unit 1", "values unit 3", "values unit 2"))
      << "unit 1 was fetched ahead and given up; nothing more was guessed";
}

TEST(ShardingValues, Zero1And2PublishUnderTheNextForward) {
  for (const char* strategy : {"zero1", "zero2"}) {
    RankGroup ranks(2);
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, load_plugin(strategy), load_plugin("adamw"), even_model(3),
                       {{"bucket_size", int64_t{1}}});
      (void)d.train(kOne, 0.1);
    });
    std::vector<std::string> labels = ranks.meeting("data").labels(0);
    labels.erase(labels.begin(), labels.begin() + 3);
    EXPECT_THAT(labels, ElementsAre("values unit 0", "values unit 1", "values unit 2")) << strategy;
  }
}

/// A rank that is ahead starts all of its sums and waits for none: they end when the others come.
TEST(ShardingValues, BackwardDoesNotWaitForSums) {
  for (const char* strategy : {"ddp", "zero1"}) {
    RankGroup ranks(2);
    std::mutex mutex;
    std::condition_variable changed;
    bool is_done = false;
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, load_plugin(strategy), load_plugin("adamw"), even_model(4),
                       {{"bucket_size", int64_t{1}}});
      d.begin();
      if (rank.rank() == 1) {  // comes when rank 0's whole backward is over
        std::unique_lock<std::mutex> lock(mutex);
        EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return is_done; }))
            << strategy << ": rank 0 waits in its backward for rank 1";
      }
      d.backward_all(kOne);
      d.end_backward();
      if (rank.rank() == 0) {
        EXPECT_EQ(ranks.meeting("data").labels(0).size(), 4U);
        const std::lock_guard<std::mutex> lock(mutex);
        is_done = true;
        changed.notify_all();
      }
      EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(4.0 * kElements * 4));
    });
  }
}

TEST(ShardingValues, RollbackGivesUpWhatWasGathered) {
  for (const char* strategy : {"zero1", "zero2", "zero3"}) {
    RankGroup ranks(2);
    ranks.meeting("data").execute_late(std::chrono::milliseconds(1));
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, load_plugin(strategy), load_plugin("adamw"), even_model(4));
      (void)d.train(kOne, 0.1);
      const std::vector<ciuic_use> uses = d.schedule(2);
      d.begin(uses, 2);
      for (size_t i = 0; i < 7; ++i) {
        d.walk(uses[i], kOne);
      }
      (void)d.bind(uses[7]);
      d.check(d.vt().rollback(d.self(), 10'000'000'000));
      EXPECT_DOUBLE_EQ(d.train(kOne, 0.1).norm, std::sqrt(4.0 * kElements * 4)) << strategy;
    });
    EXPECT_THAT(ranks.rank(0).host.imbalance(), IsEmpty()) << strategy;
  }
}

TEST(ShardingValues, MoreRanksThanElements) {
  for (const char* strategy : {"zero1", "zero2", "zero3"}) {
    ShardingCase c;
    c.world = 7;
    c.model = {{"scalar", {}, 0}, {"two", {2}, 1}, {"empty", {0}, 1}, {"three", {3}, 2}};
    const auto expected = run_case(c);
    c.strategy = strategy;
    EXPECT_EQ(difference(run_case(c)->state, expected->state), 0) << strategy;
  }
}

}  // namespace
}  // namespace ciuic::testing
