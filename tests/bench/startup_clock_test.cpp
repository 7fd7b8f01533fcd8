// SPDX-License-Identifier: MIT
#include "core/launch/startup_clock.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ciuic::core {
namespace {

TEST(StartupClock, TimesGoThroughAnArgument) {
  const LaunchTimes times = LaunchTimes::parse(LaunchTimes{12345678901, 12345678999}.text());
  EXPECT_EQ(times.launcher_start, 12345678901);
  EXPECT_EQ(times.rank_start, 12345678999);
  for (const char* wrong : {"", "12", "12,", "a,b"}) {
    EXPECT_EQ(LaunchTimes::parse(wrong).launcher_start, 0) << wrong;
  }
}

TEST(StartupClock, ThisProcessStartedBeforeNow) {
  const int64_t start = process_start_ns();
  EXPECT_GT(start, 0);
  EXPECT_LE(start, host_clock_ns());
  EXPECT_LT(host_clock_ns() - start, int64_t{600} * 1'000'000'000);  // a test's time limit and more
}

TEST(StartupClock, PartsAddUpFromTheLaunchersStart) {
  const int64_t now = host_clock_ns();
  StartupClock clock({now - 3'000'000'000, now - 1'000'000'000});
  clock.lap("libraries");
  clock.lap("first_step");
  ASSERT_EQ(clock.parts().size(), 3);
  EXPECT_EQ(clock.parts()[0].first, "launch");
  EXPECT_DOUBLE_EQ(clock.parts()[0].second, 2);
  EXPECT_GE(clock.parts()[1].second, 1);
  EXPECT_GE(clock.seconds(), 3);
  const auto json = nlohmann::json::parse(clock.json());
  EXPECT_EQ(json.at("seconds").get<double>(), clock.seconds());
  EXPECT_EQ(json.size(), 4);
}

TEST(StartupClock, WithoutALauncherItBeginsWithTheProcess) {
  StartupClock clock(LaunchTimes{});
  clock.lap("libraries");
  ASSERT_EQ(clock.parts().size(), 1);
  EXPECT_EQ(clock.parts()[0].first, "libraries");
  EXPECT_GE(clock.seconds(), 0);
}

}  // namespace
}  // namespace ciuic::core
