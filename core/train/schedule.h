// SPDX-License-Identifier: MIT
//
// A value over training: learning rate, expert bias rate. Step t (from 1) uses the value at t;
// linear and cosine go from the value before the phase (0 before the first) to `to`, reached at
// `until`, so a warm-up over n steps begins at to / n.
//
// A pure function of t: resume needs no state, and every rank gets the same bits. t counts applied
// updates, so a skipped step does not advance it. Source: DeepSeek-V3, arXiv:2412.19437,
// section 4.2, writes its rate in steps and tokens; both may be mixed here.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/schedule_phase.h"

namespace ciuic::core {

class Schedule {
 public:
  /// A phase in tokens ends at the step t where t * step_tokens reaches it, which may lie between
  /// two steps: the ramp is taken at the exact token. "end" is total_steps. After the last phase
  /// its `to` stays. Throws: Failure (Usage) if a phase ends before the one before it.
  Schedule(const SchedulePhases& phases, int64_t total_steps, int64_t step_tokens);

  /// The value that step t uses, t from 1. At 0: the value before training.
  [[nodiscard]] double at(int64_t t) const;

 private:
  /// Positions in steps; a phase in tokens may begin or end between two.
  struct Phase {
    double begin, end;
    double from, to;
    SchedulePhase::Shape shape;
  };

  std::vector<Phase> phases_;
};

}  // namespace ciuic::core
