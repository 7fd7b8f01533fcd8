// SPDX-License-Identifier: MIT
//
// Two clocks of a step's communication: how long any collective was in flight, and how long this
// rank waited for one. Their difference is what computation hid.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

namespace ciuic::core {

/// Thread rule: any thread.
class CommClock {
 public:
  using Clock = std::chrono::steady_clock;

  void begin() {
    const std::lock_guard lock(mutex_);
    if (in_flight_++ == 0) {
      since_ = Clock::now();
    }
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (--in_flight_ == 0) {
      busy_ += Clock::now() - since_;
    }
  }
  void add_exposed(Clock::duration waited) {
    const std::lock_guard lock(mutex_);
    exposed_ += waited;
  }

  struct Seconds {
    double busy = 0;
    double exposed = 0;
  };
  /// What has passed since the last call.
  Seconds take() {
    const std::lock_guard lock(mutex_);
    if (in_flight_ > 0) {
      const auto now = Clock::now();
      busy_ += now - since_;
      since_ = now;
    }
    // A wait also wakes up and returns; what is beyond the work's own time is not communication.
    const Seconds s{std::chrono::duration<double>(busy_).count(),
                    std::chrono::duration<double>(std::min(exposed_, busy_)).count()};
    busy_ = exposed_ = {};
    return s;
  }

 private:
  std::mutex mutex_;
  int in_flight_ = 0;
  Clock::time_point since_;
  Clock::duration busy_{};
  Clock::duration exposed_{};
};

}  // namespace ciuic::core
