// SPDX-License-Identifier: MIT
//
// How far a run is after each step, as planned: samples and tokens by step, for batches that may
// grow. It says how many steps `run.tokens` is, where a schedule's phase in tokens lies among
// steps, and what `ciuic config show --schedule` prints. Steps that are skipped count in it like
// others.
//
// Kept as stretches of equal steps, found by looking ahead: a run of 10^15 steps costs a few calls
// per change of the batch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/config/run_config.h"

namespace ciuic::core {

/// One step, over all ranks.
struct StepTotals {
  uint64_t samples = 0;
  uint64_t tokens = 0;
  uint32_t row_tokens = 0;  // of one sequence

  friend bool operator==(const StepTotals&, const StepTotals&) = default;
};

/// run.steps or run.tokens.
struct RunLength {
  uint64_t count = 0;
  bool is_in_tokens = false;

  static RunLength of(const RunSection& run);
};

class BatchCourse {
 public:
  /// The totals of a step, given how many samples and tokens came before it.
  using Ask = std::function<StepTotals(uint64_t step, uint64_t samples, uint64_t tokens)>;

  /// Every step alike.
  BatchCourse(RunLength length, const StepTotals& each);
  /// `ask` must grow: none of its totals shrinks when step, samples or tokens rise. Throws: Failure
  /// (Plugin) when it is seen not to, or a step has no tokens.
  BatchCourse(RunLength length, const Ask& ask);

  [[nodiscard]] uint64_t total_steps() const { return total_steps_; }
  [[nodiscard]] double total_tokens() const { return tokens_at(static_cast<double>(total_steps_)); }
  [[nodiscard]] bool is_in_tokens() const { return is_in_tokens_; }
  [[nodiscard]] bool is_constant() const { return stretches_.size() == 1; }

  /// Tokens after so many steps, and back; between two steps on the straight line.
  [[nodiscard]] double tokens_at(double steps) const;
  [[nodiscard]] double steps_at(double tokens) const;
  /// Of step t, from 1; past the end that of the last.
  [[nodiscard]] const StepTotals& of_step(uint64_t step) const;

  /// Steps from `first` on that are alike.
  struct Stretch {
    uint64_t first = 1;
    uint64_t samples_before = 0;
    uint64_t tokens_before = 0;
    StepTotals each;
  };
  [[nodiscard]] const std::vector<Stretch>& stretches() const { return stretches_; }

 private:
  std::vector<Stretch> stretches_;
  uint64_t total_steps_ = 0;
  bool is_in_tokens_ = false;
};

}  // namespace ciuic::core
