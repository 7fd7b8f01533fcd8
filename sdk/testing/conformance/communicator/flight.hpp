// SPDX-License-Identifier: MIT
//
// A collective under way, and a callback that counts itself.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "run_cases.hpp"

namespace ciuic::testing::communicator {

struct Flight {
  KeptBuffers buffers;
  Work work;
};

/// Throws NotOffered without sums of f32 that have these bits.
void need_sum(const Scene& scene, uint64_t bits = CIUIC_COMM_SUPPORTED);

/// Submits; timeout 0: long.
[[nodiscard]] Flight take_off(Scene& scene, const Case& c, int64_t timeout_ns = 0);
/// Waits, and compares the result; `what` opens the message of a failure.
void land(Scene& scene, const Flight& flight, const std::string& what);

/// A sum of `count` f32, out of place.
Case sum_of(const Scene& scene, int64_t count);

/// One callback of one work. What it writes to is left behind, so that a late call finds it.
class CallbackProbe {
 public:
  /// Registers. A work that was done at submit (NULL) counts as called.
  void watch(const Scene& scene, const Work& work) const;
  /// From now on every call is one too late.
  void close() const noexcept { state_->is_closed = true; }

  [[nodiscard]] int calls() const noexcept { return state_->calls; }
  [[nodiscard]] int late_calls() const noexcept { return state_->late; }
  [[nodiscard]] int32_t code() const noexcept { return state_->code; }
  [[nodiscard]] std::string describe() const;
  /// Waits for the call. A second one is seen by who asks again later.
  void expect_once(const Scene& scene, const std::string& what) const;
  /// Waits for the first call, at most this long.
  [[nodiscard]] bool comes_within(int64_t nanoseconds) const;

 private:
  struct State {
    Host host;
    std::atomic<int> calls{0};
    std::atomic<int> late{0};
    std::atomic<int32_t> code{CIUIC_OK};
    std::atomic<bool> is_closed{false};
  };
  static void call(void* context, const ciuic_status* status);

  State* state_ = new State;
};

}  // namespace ciuic::testing::communicator
