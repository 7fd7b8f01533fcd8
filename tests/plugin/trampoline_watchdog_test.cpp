// SPDX-License-Identifier: MIT
#include <future>

#include <gtest/gtest.h>

#include "core/plugin/trampoline/watchdog.h"

namespace ciuic::core {
namespace {

using std::chrono::seconds;

const PluginIdentity kOuter{CIUIC_KIND_SHARDING, "outer 1"};
const PluginIdentity kInner{CIUIC_KIND_COMMUNICATOR, "inner 2"};

/// Time stands still unless a test moves it.
struct HangDetectorTest : ::testing::Test {
  std::optional<HungCall> after(seconds s) { return detector.look(now += s); }

  HangDetector detector{seconds(10), seconds(100)};
  HangDetector::Time now{};
};

TEST_F(HangDetectorTest, ACallOverTheLimitIsNamed) {
  const CrumbScope scope(kOuter, "sharding.step", 7);
  EXPECT_FALSE(after(seconds(0)));
  EXPECT_FALSE(after(seconds(9)));
  const auto hung = after(seconds(2));
  ASSERT_TRUE(hung);
  EXPECT_EQ(hung->crumb.plugin, &kOuter);
  EXPECT_STREQ(hung->crumb.function, "sharding.step");
  EXPECT_EQ(hung->crumb.sequence, 7u);
  EXPECT_EQ(hung->elapsed, seconds(11));
}

TEST_F(HangDetectorTest, ManyShortCallsAreNoHang) {
  for (uint64_t i = 0; i < 10; ++i) {
    const CrumbScope scope(kOuter, "sharding.bind", i);
    EXPECT_FALSE(after(seconds(9)));
  }
}

TEST_F(HangDetectorTest, TheOuterCallIsBlamedWhereInnerOnesComeAndGo) {
  const CrumbScope outer(kOuter, "sharding.step", 1);
  std::optional<HungCall> hung;
  for (uint64_t i = 0; i < 3 && !hung; ++i) {
    const CrumbScope inner(kInner, "communicator.health", i);
    hung = after(seconds(6));
  }
  ASSERT_TRUE(hung);
  EXPECT_EQ(hung->crumb.plugin, &kOuter);
}

TEST_F(HangDetectorTest, TheInnerCallIsBlamedWhereBothAreOver) {
  const CrumbScope outer(kOuter, "sharding.step", 1);
  const CrumbScope inner(kInner, "communicator.submit", 5);
  after(seconds(0));
  const auto hung = after(seconds(11));
  ASSERT_TRUE(hung);
  EXPECT_EQ(hung->crumb.plugin, &kInner);
}

TEST_F(HangDetectorTest, WaitsHaveTheirOwnLimitAndStopTheOthersClocks) {
  const CrumbScope outer(kOuter, "sharding.step", 1);
  after(seconds(0));
  {
    const CrumbScope wait(kInner, "communicator.submit", 5, true);
    EXPECT_FALSE(after(seconds(50)));
    EXPECT_FALSE(after(seconds(49)));
  }
  EXPECT_FALSE(after(seconds(5)));
  const CrumbScope wait(kInner, "communicator.submit", 6, true);
  after(seconds(0));
  const auto hung = after(seconds(101));
  ASSERT_TRUE(hung);
  EXPECT_EQ(hung->crumb.sequence, 6u);
  EXPECT_TRUE(hung->crumb.is_wait);
}

TEST(Watchdog, CallsBackOnceAndEndsAtOnce) {
  std::promise<HungCall> promise;
  const Watchdog watchdog(std::chrono::milliseconds(50), std::chrono::milliseconds(50),
                          [&](const HungCall& call) { promise.set_value(call); });
  const CrumbScope scope(kOuter, "sharding.step", 3);
  auto hung = promise.get_future();
  ASSERT_EQ(hung.wait_for(seconds(20)), std::future_status::ready);
  EXPECT_EQ(hung.get().crumb.sequence, 3u);
}

}  // namespace
}  // namespace ciuic::core
