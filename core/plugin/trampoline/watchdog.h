// SPDX-License-Identifier: MIT
//
// A hang with a name: a thread that looks at all breadcrumbs a few times per limit, and reports the
// call that has not returned for longer. Calls pay nothing for it: it compares tickets and measures
// time itself, so "for 60 s" is right to one look.
//
// While a thread waits in a work (communication, which has its own deadline), the clocks of the
// calls around it stand still, and the wait itself has the larger limit of the two.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/plugin/trampoline/breadcrumb.h"

namespace ciuic::core {

struct HungCall {
  Crumb crumb;
  int thread = 0;
  std::chrono::nanoseconds elapsed{0};
};

/// What the watchdog knows between two looks. Apart from the thread, so that a test brings the
/// time.
class HangDetector {
 public:
  using Time = std::chrono::steady_clock::time_point;

  HangDetector(std::chrono::nanoseconds limit, std::chrono::nanoseconds wait_limit)
      : limit_(limit), wait_limit_(std::max(limit, wait_limit)) {}

  /// The innermost call of any thread that is over its limit.
  std::optional<HungCall> look(Time now);

 private:
  struct Seen {
    uint64_t ticket = 0;
    Time since;
  };
  struct ThreadSeen {
    std::array<Seen, CrumbStack::kDeepest> levels;
    Time last_look;
  };
  std::optional<HungCall> look_at(const CrumbStack& stack, ThreadSeen& seen, Time now) const;

  std::chrono::nanoseconds limit_;
  std::chrono::nanoseconds wait_limit_;
  std::map<const CrumbStack*, ThreadSeen> threads_;
};

class Watchdog {
 public:
  using OnHang = std::function<void(const HungCall&)>;

  /// `on_hang` is called once, in the watchdog's thread. Limits are longer than 0.
  Watchdog(std::chrono::nanoseconds limit, std::chrono::nanoseconds wait_limit, OnHang on_hang);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

 private:
  void watch();

  HangDetector detector_;
  const std::chrono::nanoseconds pause_;
  OnHang on_hang_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

/// What a rank does about a hang: the last words, and the end of the process with the code of a
/// timeout.
[[noreturn]] void end_hung_rank(const HungCall& call, std::chrono::nanoseconds limit);

}  // namespace ciuic::core
