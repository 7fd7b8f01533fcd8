// SPDX-License-Identifier: MIT
#pragma once

// Where the time of a training step goes: for each phase and each part of the model, the seconds
// that the rank's own thread spent in it and in nothing within it. So all of them add up to the
// step.
//
// Off but for `ciuic bench step`: spans look at one thread-local pointer, which is null in a run.
// It is no argument, since every layer's forward and backward would carry it for a tool's sake.
// Threads: the clock counts for the thread that installed it.

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

namespace ciuic::core {

enum class Phase { Data, Forward, Backward, Optimizer, Rest };
inline constexpr size_t kNumPhases = 5;

/// None: the code between the parts. Prediction: what multi-token prediction has beside a layer,
/// whose attention and experts count as such.
enum class Part {
  None,
  Embedding,
  Norm,
  Attention,
  Router,
  Experts,
  DenseFeedForward,
  Loss,
  Prediction,
  Sharding,
  Communication,
};
inline constexpr size_t kNumParts = 11;

class StepClock {
 public:
  using Clock = std::chrono::steady_clock;
  /// Seconds by phase and part.
  using Sheet = std::array<std::array<double, kNumParts>, kNumPhases>;

  /// This thread's; nullptr: nobody asks.
  static inline thread_local StepClock* current = nullptr;

  /// Returns what it was before.
  Phase enter(Phase phase) {
    charge(Clock::now());
    return std::exchange(phase_, phase);
  }
  Part enter(Part part) {
    charge(Clock::now());
    return std::exchange(part_, part);
  }

  /// What has passed from the last call until `now`, in full.
  Sheet take(Clock::time_point now = Clock::now()) {
    charge(now);
    return std::exchange(sheet_, {});
  }

 private:
  void charge(Clock::time_point now) {
    sheet_[static_cast<size_t>(phase_)][static_cast<size_t>(part_)] +=
        std::chrono::duration<double>(now - since_).count();
    since_ = now;
  }

  Sheet sheet_{};
  Phase phase_ = Phase::Rest;
  Part part_ = Part::None;
  Clock::time_point since_ = Clock::now();
};

/// A phase or a part, as long as this lives.
template <typename What>
class ClockSpan {
 public:
  explicit ClockSpan(What what) : clock_(StepClock::current) {
    if (clock_ != nullptr) {
      outer_ = clock_->enter(what);
    }
  }
  ~ClockSpan() {
    if (clock_ != nullptr) {
      clock_->enter(outer_);
    }
  }
  ClockSpan(const ClockSpan&) = delete;
  ClockSpan& operator=(const ClockSpan&) = delete;

 private:
  StepClock* clock_;
  What outer_{};
};

using PhaseSpan = ClockSpan<Phase>;
using PartSpan = ClockSpan<Part>;

}  // namespace ciuic::core
