// SPDX-License-Identifier: MIT
//
// Measures a run's steps from within, on every rank: a few to warm up, the rate of matrix products,
// the timed ones, that rate again. Rank 0 writes what was found as one JSON object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/bench/gemm_rate.h"
#include "core/bench/step_clock.h"
#include "core/memory/block_pool.h"
#include "core/model/model_config.h"
#include "core/plugin/host_context.h"
#include "core/train/run_plan.h"
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
  using Json = nlohmann::ordered_json;
  [[nodiscard]] Json run_json(const RunPlan& plan, int world) const;
  [[nodiscard]] double seconds(const Sums& sums, Phase phase, Part part) const;
  [[nodiscard]] double mean_seconds(const Sums& sums) const;
  [[nodiscard]] Json phases_json(const Sums& sums) const;
  [[nodiscard]] Json modules_json(const Session& session, const Sums& sums, double gemm) const;
  [[nodiscard]] std::string report(const Session& session, const Sums& sums,
                                   const StartupClock& startup) const;

  const StepBenchRequest request_;
  uint64_t seen_ = 0;
  StepClock clock_;
  StepClock::Clock::time_point begin_;
  StepClock::Sheet sheet_{};  // of all timed steps
  std::vector<double> seconds_;
  ObservedStep last_;
  /// Of tensors and of the host's memory for plugins: until the first timed step, and in the end.
  BlockPool::Counts arena_before_, arena_;
  MemoryCounts host_memory_;  // in the end of the timed steps
  int64_t page_faults_ = 0;
  GemmRate before_, after_, own_;
  double copy_rate_ = 0;  // of memory, with all ranks at it
  int64_t peak_rss_ = 0;
};

}  // namespace ciuic::core
