// SPDX-License-Identifier: MIT
//
// The plugin as its users see it: ranks are processes of this machine. They run the scenarios of the
// gloo plugin's test; here stands what their answers have in common.
#include <filesystem>
#include <set>

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

class ShmWorld : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, ShmWorld, ::testing::Values(1, 2, 3, 4));

TEST_P(ShmWorld, NumbersAreRightAndTheSameBitsEverywhereAndEveryTime) {
  const auto first = run_ranks(GetParam(), "numbers");
  expect_all_succeed(first);
  for (const RankProcess& rank : first) {
    EXPECT_EQ(rank.value("hash"), first[0].value("hash"));
  }
  EXPECT_EQ(run_ranks(GetParam(), "numbers")[0].value("hash"), first[0].value("hash"));
}

TEST_P(ShmWorld, PartsArriveWhereTheyBelong) { expect_all_succeed(run_ranks(GetParam(), "moves")); }
TEST_P(ShmWorld, MessagesArrive) { expect_all_succeed(run_ranks(GetParam(), "messages")); }
TEST_P(ShmWorld, ManyOperationsInFlight) { expect_all_succeed(run_ranks(GetParam(), "in_flight")); }
TEST_P(ShmWorld, GroupsComeAndGo) { expect_all_succeed(run_ranks(GetParam(), "reconnect")); }
TEST_P(ShmWorld, WhatCapabilitiesDenyIsRefused) {
  expect_all_succeed(run_ranks(GetParam(), "capabilities"));
}

TEST(Shm, SplitsIntoSubgroups) { expect_all_succeed(run_ranks(4, "split")); }
TEST(Shm, SubgroupsWorkAtTheSameTime) { expect_all_succeed(run_ranks(4, "groups")); }

TEST(Shm, SilentRankIsNamedAtTheDeadline) {
  for (const int world : {2, 3}) {
    const auto ranks = run_ranks(world, "silent");
    expect_all_succeed(ranks);
    for (int r = 0; r < world - 1; ++r) {
      const RankProcess& rank = ranks[static_cast<size_t>(r)];
      EXPECT_EQ(rank.number("code"), CIUIC_DEADLINE) << rank.output();
      EXPECT_EQ(rank.number("peer"), world - 1) << rank.output();
      EXPECT_GE(rank.number("seconds"),
                1.8);  // or when a peer's deadline, a little earlier, passes
      EXPECT_LE(rank.number("seconds"), 2.2);
    }
  }
}

TEST(Shm, MessageSaysWhichOperation) {
  const auto ranks = run_ranks(2, "short_request");
  expect_all_succeed(ranks);
  EXPECT_THAT(ranks[0].value("text"),
              HasSubstr("all-reduce #12 \"gradients layer 3\" (4194304 bytes, rank 0 of 2)"));
  EXPECT_LE(ranks[0].number("seconds"), 0.7);
}

/// What is in /dev/shm, where named shared memory would be.
std::set<std::string> named_memory() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    names.insert(entry.path().filename());
  }
  return names;
}

TEST(Shm, KilledRankIsNamedWithinASecondAndLeavesNothing) {
  for (const std::string victim : {"killed_last", "killed_first"}) {
    for (const int world : {2, 3}) {
      const std::set<std::string> before = named_memory();
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
        EXPECT_LE(rank.number("seconds"), 1.1)
            << "100 ms of them before it dies: " << rank.output();
      }
      for (const std::string& name : named_memory()) {
        EXPECT_TRUE(before.contains(name) || name.find("ciuic") == std::string::npos) << name;
      }
    }
  }
}

TEST(Shm, AbortEndsEverythingWithItsCode) {
  for (const int world : {2, 3}) {
    const auto ranks = run_ranks(world, "abort");
    expect_all_succeed(ranks);
    EXPECT_EQ(ranks[0].number("code"), CIUIC_ABORTED);
    EXPECT_LE(ranks[0].number("after_abort"), 1);
    for (size_t r = 1; r < ranks.size(); ++r) {
      EXPECT_EQ(ranks[r].number("code"), CIUIC_UNAVAILABLE) << ranks[r].output();
      EXPECT_EQ(ranks[r].number("peer"), 0) << ranks[r].output();
    }
  }
}

TEST(Shm, AbortEndsAnOpenReceive) {
  const auto ranks = run_ranks(2, "abort_receive");
  expect_all_succeed(ranks);
  EXPECT_EQ(ranks[0].number("code"), CIUIC_CANCELLED) << ranks[0].output();
}

TEST(Shm, DestroyEndsUnfinishedOperations) {
  const auto ranks = run_ranks(2, "unfinished");
  expect_all_succeed(ranks);
  EXPECT_LE(ranks[0].number("destroy"), 2);
  EXPECT_EQ(ranks[0].number("code"), CIUIC_CANCELLED);
}

TEST(Shm, MissingMemberOfAGroupIsNamed) {
  const auto ranks = run_ranks(3, "missing_member");
  expect_all_succeed(ranks);
  for (const size_t r : {0, 1}) {
    EXPECT_EQ(ranks[r].number("code"), CIUIC_DEADLINE);
    EXPECT_EQ(ranks[r].number("peer"), 2);
  }
}

TEST(Shm, RanksThatDisagreeAreTold) { expect_all_succeed(run_ranks(2, "mismatch", 80s)); }

/// Ranks of two process namespaces: both are told, and to whom to turn.
TEST(Shm, TwoNamespacesAreRefused) {
  if (std::system("unshare --pid --fork true 2>/dev/null") != 0) {
    GTEST_SKIP() << "this user may make no process namespace";
  }
  const std::string address = "tcp://127.0.0.1:" + std::to_string(core::free_port());
  RankProcess here({"refused", "0", "2", address});
  RankProcess there({"refused", "1", "2", address}, {"unshare", "--pid", "--fork", "--mount-proc"});
  for (RankProcess* rank : {&here, &there}) {
    rank->finish(Clock::now() + 40s);
    EXPECT_EQ(rank->exit_code(), 0) << rank->output();
    EXPECT_EQ(rank->number("code"), CIUIC_UNIMPLEMENTED) << rank->output();
    EXPECT_THAT(rank->value("text"), HasSubstr("another machine or in another process namespace"));
  }
}

}  // namespace
}  // namespace ciuic::tests
