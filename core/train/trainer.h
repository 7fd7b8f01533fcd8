// SPDX-License-Identifier: MIT
//
// The training loop. run() reads as the algorithm of docs/life_of_a_step.md: plan, passes,
// statistics, update, metrics, then validation, a checkpoint or a stop where one is due. Every
// decision is taken from numbers that all ranks share.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/launch/startup_clock.h"
#include "core/train/binder.h"
#include "core/train/checkpointing.h"
#include "core/train/metrics_file.h"
#include "core/train/passes.h"
#include "core/train/planned_course.h"
#include "core/train/progress.h"
#include "core/train/run_schedules.h"
#include "core/train/session.h"
#include "core/train/slots.h"
#include "core/train/step_observer.h"
#include "core/train/walk.h"

namespace ciuic::core {

struct TrainerOptions {
  bool is_quiet = false;
  bool steps_on_lines = false;       // also on a terminal
  StepObserver* observer = nullptr;  // nullptr: nobody looks on
  StartupClock* startup = nullptr;   // goes into the first step's line
};

class Trainer {
 public:
  /// `metrics` is rank 0's; nullptr elsewhere. All references must outlive this object.
  Trainer(Session& session, const RunFolder& folder, MetricsFile* metrics, uint64_t attempt,
          TrainState start, const TrainerOptions& options);

  /// Done, or Stopped after a request with a checkpoint written. Throws Failure.
  ExitCode run();

  [[nodiscard]] const TrainState& state() const { return state_; }

 private:
  struct StepResult;

  [[nodiscard]] BatchPlan plan_step(uint64_t step) const;
  StepResult train_step();
  [[nodiscard]] bool is_any_world() const;
  std::vector<MicroBatch> load(const BatchPlan& plan, const StepSlots& slots,
                               StepResult& result) const;
  void run_passes(const BatchPlan& plan, StepResult& result);
  void agree_on(StepResult& result);
  void update(StepResult& result);
  void update_expert_bias(double rate);
  [[nodiscard]] std::vector<double> norms_of_groups(double grad_scale) const;
  [[nodiscard]] std::string cause_of(const ciuic_grad_stats& stats) const;
  [[nodiscard]] static std::string place_of(const StepResult& result);
  void judge(const StepResult& result);
  [[nodiscard]] Failure bad_numbers(const StepResult& result) const;
  void warn(const std::string& text) const;
  void report(const StepResult& result);
  void add_group_norms(const StepResult& result, JsonLine& line) const;
  void add_terms(const StepResult& result, JsonLine& line) const;
  void add_scheduled(const StepResult& result, JsonLine& line) const;
  void validate(bool is_due);
  [[nodiscard]] bool has_more_steps();
  [[nodiscard]] bool is_validation_due(const TrainState& before) const;
  void write_run_line();

  Session& session_;
  const RunFolder& folder_;
  MetricsFile* metrics_;
  const uint64_t attempt_;
  TrainState state_;
  Binder binder_;
  Passes passes_;
  Checkpointing checkpointing_;
  const BatchPlan first_plan_;
  const RunSchedules schedules_;
  const uint64_t total_steps_;
  const std::vector<std::vector<int64_t>> norm_groups_;  // ids of parameters
  Progress progress_;
  StepObserver* const observer_;
  StartupClock* startup_;  // until the first step is over
  std::vector<MicroBatch> validation_;
  uint64_t last_validated_ = ~uint64_t{0};
  uint64_t skipped_in_a_row_ = 0;
};

}  // namespace ciuic::core
