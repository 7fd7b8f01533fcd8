// SPDX-License-Identifier: MIT
#include "core/config/quantity.h"

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

using std::chrono::nanoseconds;

TEST(Quantity, SizesHaveBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_size("64MiB"), 64 << 20);
  EXPECT_EQ(parse_size("64 MiB"), 64 << 20);
  EXPECT_EQ(parse_size("1.5KiB"), 1536);
  EXPECT_EQ(parse_size("2GB"), 2'000'000'000);
  EXPECT_EQ(parse_size("0B"), 0);
  for (const char* bad :
       {"", "64", "64mib", "MiB", "-1B", "1.5B", "1..5KiB", "1.KiB", ".5KiB", "1KiB ", "8388608TiB",
        "99999999999999999999B", "1e3B", "0x1B", "64MiB64MiB"}) {
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
  }
}

TEST(Quantity, DurationsHaveUnits) {
  EXPECT_EQ(parse_duration("30s"), std::chrono::seconds(30));
  EXPECT_EQ(parse_duration("10m"), std::chrono::minutes(10));
  EXPECT_EQ(parse_duration("250ms"), std::chrono::milliseconds(250));
  EXPECT_EQ(parse_duration("1h30m"), std::chrono::minutes(90));
  EXPECT_EQ(parse_duration("0.5s"), std::chrono::milliseconds(500));
  EXPECT_EQ(parse_duration("2d"), std::chrono::hours(48));
  for (const char* bad : {"", "30", "s", "-1s", "1.5ns", "30 seconds", "1s1", "300000d", "30S"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

TEST(Quantity, CountsHaveDecimalSuffixes) {
  EXPECT_EQ(parse_count("16"), 16);
  EXPECT_EQ(parse_count("2K"), 2000);
  EXPECT_EQ(parse_count("2B"), 2'000'000'000);
  EXPECT_EQ(parse_count("14.3T"), 14'300'000'000'000);
  for (const char* bad :
       {"", "1.5", "2k", "2KB", "B", "-2B", "+2", "9223372036854775808", "10000000T"}) {
    EXPECT_EQ(parse_count(bad), std::nullopt) << bad;
  }
}

TEST(Quantity, IntervalsAreStepsEpochsTimeOrNever) {
  EXPECT_EQ(parse_interval("50 steps"), (Interval{Interval::Unit::Steps, 50}));
  EXPECT_EQ(parse_interval("1 epoch"), (Interval{Interval::Unit::Epochs, 1}));
  EXPECT_EQ(parse_interval("2K steps"), (Interval{Interval::Unit::Steps, 2000}));
  EXPECT_EQ(parse_interval("10m"), (Interval{Interval::Unit::Time, 600'000'000'000}));
  EXPECT_EQ(parse_interval("never"), Interval{});
  for (const char* bad : {"", "50", "steps", "0 steps", "0s", "-1 steps", "5 stepps", "Never",
                          "50steps", "1 epoch "}) {
    EXPECT_EQ(parse_interval(bad), std::nullopt) << bad;
  }
}

TEST(Quantity, TextReadsBackToTheSameValue) {
  for (int64_t value : {int64_t{0}, int64_t{1}, int64_t{1023}, int64_t{1024}, int64_t{1000},
                        int64_t{64} << 20, int64_t{14'300'000'000'000}, INT64_MAX}) {
    EXPECT_EQ(parse_size(format_size(value)), value);
    EXPECT_EQ(parse_count(format_count(value)), value);
    EXPECT_EQ(parse_duration(format_duration(nanoseconds(value))), nanoseconds(value));
  }
  for (const char* text : {"never", "1 step", "50 steps", "1 epoch", "2 epochs", "10m", "1500ms"}) {
    EXPECT_EQ(format_interval(*parse_interval(text)), text);
  }
  EXPECT_EQ(format_size(64 << 20), "64MiB");
  EXPECT_EQ(format_count(2'000'000'000), "2B");
}

}  // namespace
}  // namespace ciuic::core
