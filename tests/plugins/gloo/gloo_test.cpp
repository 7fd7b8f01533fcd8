// SPDX-License-Identifier: MIT
//
// The plugin as its users see it: ranks are processes on loopback. What a rank can check itself it
// does (gloo_rank.cpp); here stands what their answers have in common.
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/abi/types.h>

#include "core/parallel/rendezvous_socket.h"
#include "rank_process.h"

namespace ciuic::tests {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class GlooWorld : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, GlooWorld, ::testing::Values(1, 2, 3, 4));

TEST_P(GlooWorld, NumbersAreRightAndTheSameBitsEverywhereAndEveryTime) {
  const auto first = run_ranks(GetParam(), "numbers");
  expect_all_succeed(first);
  for (const RankProcess& rank : first) {
    EXPECT_EQ(rank.value("hash"), first[0].value("hash"));
  }
  const auto second = run_ranks(GetParam(), "numbers");
  EXPECT_EQ(second[0].value("hash"), first[0].value("hash"));
}

TEST_P(GlooWorld, PartsArriveWhereTheyBelong) {
  expect_all_succeed(run_ranks(GetParam(), "moves"));
}

TEST_P(GlooWorld, MessagesArrive) { expect_all_succeed(run_ranks(GetParam(), "messages")); }

TEST_P(GlooWorld, ManyOperationsInFlight) {
  expect_all_succeed(run_ranks(GetParam(), "in_flight"));
}

TEST_P(GlooWorld, WhatCapabilitiesDenyIsRefused) {
  expect_all_succeed(run_ranks(GetParam(), "capabilities"));
}

TEST_P(GlooWorld, GroupsComeAndGo) { expect_all_succeed(run_ranks(GetParam(), "reconnect")); }

TEST(Gloo, IsSilentOnTheTerminal) {
  for (const RankProcess& rank : run_ranks(2, "reconnect")) {
    EXPECT_EQ(rank.output(), "");
  }
}

TEST(Gloo, FindsAnAddressOrTakesTheUsers) {
  const auto ranks = run_ranks(2, "addresses");
  expect_all_succeed(ranks);
  EXPECT_EQ(ranks[0].number("code"), CIUIC_UNAVAILABLE) << ranks[0].output();
  EXPECT_THAT(ranks[0].value("text"), HasSubstr("no-such-if0"));
}

TEST(Gloo, SplitsIntoSubgroups) { expect_all_succeed(run_ranks(4, "split")); }

TEST(Gloo, SubgroupsWorkAtTheSameTime) { expect_all_succeed(run_ranks(4, "groups")); }

TEST(Gloo, RanksThatDisagreeRunIntoTheDeadline) {
  for (const int world : {2, 3}) {
    expect_all_succeed(run_ranks(world, "mismatch", 80s));
  }
}

TEST(Gloo, SilentRankIsNamedInEveryOperation) {
  for (const int world : {2, 3}) {
    expect_all_succeed(run_ranks(world, "silent_moves", 80s));
  }
}

TEST(Gloo, KilledRankIsNamedInMovesAndMessages) {
  for (const int world : {2, 3}) {
    const auto ranks = run_ranks(world, "killed_moves");
    for (int r = 0; r < world - 1; ++r) {
      const RankProcess& rank = ranks[static_cast<size_t>(r)];
      EXPECT_EQ(rank.exit_code(), 0) << rank.output();
      EXPECT_EQ(rank.number("code"), CIUIC_UNAVAILABLE) << rank.output();
      EXPECT_EQ(rank.number("peer"), world - 1) << rank.output();
      EXPECT_LE(rank.number("seconds"), 3) << rank.output();
    }
  }
}

TEST(Gloo, AbortEndsAnOpenReceive) {
  const auto ranks = run_ranks(2, "abort_receive");
  expect_all_succeed(ranks);
  EXPECT_EQ(ranks[0].number("code"), CIUIC_CANCELLED) << ranks[0].output();
  EXPECT_LE(ranks[0].number("seconds"), 1) << ranks[0].output();
}

TEST(Gloo, SilentRankIsNamedAtTheDeadline) {
  for (const int world : {2, 3}) {
    const auto ranks = run_ranks(world, "silent");
    expect_all_succeed(ranks);
    for (int r = 0; r < world - 1; ++r) {
      const RankProcess& rank = ranks[static_cast<size_t>(r)];
      EXPECT_EQ(rank.number("code"), CIUIC_DEADLINE) << rank.output();
      EXPECT_EQ(rank.number("peer"), world - 1) << rank.output();
      EXPECT_GE(rank.number("seconds"), 1.9);
      EXPECT_LE(rank.number("seconds"), 2.2);
    }
  }
}

TEST(Gloo, MessageSaysWhichOperation) {
  const auto ranks = run_ranks(2, "short_request");
  expect_all_succeed(ranks);
  EXPECT_THAT(ranks[0].value("text"),
              HasSubstr("all-reduce #12 \"gradients layer 3\" (4194304 bytes, rank 0 of 2)"));
  EXPECT_LE(ranks[0].number("seconds"), 0.6);
}

TEST(Gloo, KilledRankIsNamedAtOnce) {
  for (const std::string victim : {"killed_last", "killed_first"}) {
    for (const int world : {2, 3}) {
      const auto ranks = run_ranks(world, victim);
      const int dead = victim == "killed_last" ? world - 1 : 0;
      for (int r = 0; r < world; ++r) {
        const RankProcess& rank = ranks[static_cast<size_t>(r)];
        if (r == dead) {
          EXPECT_EQ(rank.exit_code(), 128 + SIGKILL);
          continue;
        }
        EXPECT_EQ(rank.exit_code(), 0) << rank.output();
        EXPECT_EQ(rank.number("code"), CIUIC_UNAVAILABLE) << rank.output();
        EXPECT_EQ(rank.number("peer"), dead) << rank.output();
        EXPECT_LE(rank.number("seconds"), 3) << rank.output();
      }
    }
  }
}

/// Rank 0 has the store: when it is stopped, not even that answers.
TEST(Gloo, StoppedRankIsNamedAtTheDeadline) {
  for (const std::string victim : {"stopped_last", "stopped_first"}) {
    const std::string address = "tcp://127.0.0.1:" + std::to_string(core::free_port());
    std::vector<RankProcess> ranks;
    for (const char* rank : {"0", "1"}) {
      ranks.emplace_back(std::vector<std::string>{victim, rank, "2", address});
    }
    RankProcess& stopped = ranks[victim == "stopped_last" ? 1 : 0];
    RankProcess& other = ranks[victim == "stopped_last" ? 0 : 1];
    other.finish(Clock::now() + 30s);
    stopped.kill();
    stopped.finish(Clock::now() + 10s);
    EXPECT_EQ(other.exit_code(), 0) << other.output();
    EXPECT_EQ(other.number("code"), CIUIC_DEADLINE) << other.output();
    EXPECT_EQ(other.number("peer"), victim == "stopped_last" ? 1 : 0) << other.output();
    EXPECT_LE(other.number("seconds"), 2.2) << other.output();
  }
}

TEST(Gloo, AbortEndsEverythingWithItsCode) {
  for (const int world : {2, 3}) {
    const auto ranks = run_ranks(world, "abort");
    expect_all_succeed(ranks);
    EXPECT_EQ(ranks[0].number("code"), CIUIC_ABORTED);
    EXPECT_LE(ranks[0].number("after_abort"), 1);
    for (size_t r = 1; r < ranks.size(); ++r) {
      EXPECT_EQ(ranks[r].number("code"), CIUIC_UNAVAILABLE) << ranks[r].output();
      EXPECT_EQ(ranks[r].number("peer"), 0) << ranks[r].output();
      EXPECT_LE(ranks[r].number("seconds"), 3) << ranks[r].output();
    }
  }
}

TEST(Gloo, DestroyEndsUnfinishedOperations) {
  const auto ranks = run_ranks(2, "unfinished");
  expect_all_succeed(ranks);
  EXPECT_LE(ranks[0].number("destroy"), 2);
  EXPECT_EQ(ranks[0].number("code"), CIUIC_CANCELLED);
}

TEST(Gloo, MissingMemberOfAGroupIsNamed) {
  const auto ranks = run_ranks(3, "missing_member");
  expect_all_succeed(ranks);
  for (const size_t r : {0, 1}) {
    EXPECT_EQ(ranks[r].number("code"), CIUIC_DEADLINE);
    EXPECT_EQ(ranks[r].number("peer"), 2);
    EXPECT_LE(ranks[r].number("seconds"), 1.5);
  }
}

/// Not a check: the numbers for the record.
TEST(Gloo, Benchmark) {
  const auto ranks = run_ranks(2, "bench");
  expect_all_succeed(ranks);
  for (const char* what :
       {"all_reduce_16MiB_us", "all_reduce_bf16_16MiB_us", "reduce_scatter_16MiB_us",
        "all_gather_16MiB_us", "broadcast_16MiB_us", "all_reduce_tree_16MiB_us",
        "all_to_all_16MiB_us", "send_and_receive_16MiB_us", "send_and_receive_64B_us",
        "all_reduce_64B_us", "barrier_us"}) {
    RecordProperty(what, ranks[0].value(what));
    std::cout << what << " " << ranks[0].value(what) << "\n";
  }
}

}  // namespace
}  // namespace ciuic::tests
