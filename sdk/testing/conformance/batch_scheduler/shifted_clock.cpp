// SPDX-License-Identifier: MIT
#include "shifted_clock.hpp"

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

std::atomic<int64_t> shift_seconds{0};

}  // namespace

// The dynamic linker finds these before libc's: the program comes first in every lookup.
extern "C" {

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  const bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result == 0 && is_wall) {
    out->tv_sec += shift_seconds.load(std::memory_order_relaxed);
  }
  return result;
}

__attribute__((visibility("default"))) time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) {
    *out = now.tv_sec;
  }
  return now.tv_sec;
}

__attribute__((visibility("default"))) int gettimeofday(timeval* out, void* /*zone*/) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return result;
}

}  // extern "C"

namespace ciuic::testing {

ShiftedClock::ShiftedClock(int64_t seconds) { shift_seconds = seconds; }
ShiftedClock::~ShiftedClock() { shift_seconds = 0; }

TimeZone::TimeZone(const char* name) {
  const char* before = std::getenv("TZ");
  if (before != nullptr) {
    before_ = before;
  }
  setenv("TZ", name, 1);
  tzset();
}
TimeZone::~TimeZone() {
  before_ ? setenv("TZ", before_->c_str(), 1) : unsetenv("TZ");
  tzset();
}

}  // namespace ciuic::testing
