// SPDX-License-Identifier: MIT
//
// Measures a run's steps from within, on every rank: a few to warm up, the rate of matrix products,
// the timed ones, that rate again. Rank 0 writes what was found as one JSON object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/bench/gemm_rate.h"
#include "core/bench/step_clock.h"
#include "core/bench/storage_counter.h"
#include "core/train/step_observer.h"

namespace ciuic::core {

struct StepBenchRequest {
  uint64_t warmup = 3;
  uint64_t steps = 10;
  std::string file;  // where rank 0 writes
};

class StepBench final : public StepObserver {
 public:
  explicit StepBench(StepBenchRequest request);
  ~StepBench() override;

  bool begin_step(Session& session) override;
  void end_step(const ObservedStep& step) override;
  void finish(Session& session, const StartupClock& startup) override;

 private:
  struct Sums;
  void begin_timed_steps(Session& session);
  GemmRate gemm_rate(Session& session, Products products) const;
  Sums summed(Session& session) const;
  [[nodiscard]] std::string report(const Session& session, const Sums& sums,
                                   const StartupClock& startup) const;

  const StepBenchRequest request_;
  uint64_t seen_ = 0;
  StepClock clock_;
  StepClock::Clock::time_point begin_;
  StepClock::Sheet sheet_{};  // of all timed steps
  std::vector<double> seconds_;
  ObservedStep last_;
  /// Of LibTorch's allocator and of the host's for plugins: until the first timed step, then of
  /// the timed steps.
  MemoryCounts storage_, host_memory_;
  int64_t page_faults_ = 0;
  GemmRate before_, after_, own_;
  int64_t peak_rss_ = 0;
};

}  // namespace ciuic::core
