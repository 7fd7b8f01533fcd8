// SPDX-License-Identifier: MIT
//
// Other clocks for a plugin while an object lives. The wall clock is moved by symbols of this
// program that stand before libc's: what a plugin gets from time, gettimeofday and clock_gettime
// (and so from std::chrono::system_clock) is moved. Monotonic clocks, on which deadlines rest,
// stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ciuic::testing {

class ShiftedClock {
 public:
  explicit ShiftedClock(int64_t seconds);
  ~ShiftedClock();
  ShiftedClock(const ShiftedClock&) = delete;
  ShiftedClock& operator=(const ShiftedClock&) = delete;
};

class TimeZone {
 public:
  explicit TimeZone(const char* name);
  ~TimeZone();
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;

 private:
  std::optional<std::string> before_;
};

}  // namespace ciuic::testing
