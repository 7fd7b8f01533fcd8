// SPDX-License-Identifier: MIT
//
// A value over training: learning rate, expert bias rate, weights of losses, norm to clip at. Step
// t (from 1) uses the value at t. A phase goes from the value before it, a (0 before the first), to
// its `to`, b, reached at `until`. With x from 0 to 1 over the phase:
//
//   linear        a + (b - a) x                          a warm-up over n steps begins at b / n
//   cosine        b + (a - b) (1 + cos(pi x)) / 2        SGDR, arXiv:1608.03983, equation 5
//   constant, step  b from the first step on
//   exponential   a (b / a)^x                            WSD's decay, MiniCPM, arXiv:2404.06395
//   sqrt          a + (b - a) sqrt(x)                    "1-sqrt", arXiv:2405.18392
//   inverse_sqrt  a sqrt(begin / position)               no b; arXiv:1706.03762, equation 3
//
// A phase until so many steps is measured in steps, one until so many tokens in tokens, and "end"
// in what sets the run's length. Only applied updates count, and their tokens; a skipped step
// advances nothing. Where the phase before has the other unit, the phase begins where the run as
// planned has it.
//
// A pure function of position and file: resume needs no other state, and every rank gets the same
// bits. Source: DeepSeek-V3, arXiv:2412.19437, section 4.2, writes its recipe in steps and tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/schedule_phase.h"
#include "core/train/batch_course.h"

namespace ciuic::core {

/// Updates applied and the tokens that went into them, those of the step in question included.
struct SchedulePosition {
  double updates = 0;
  double tokens = 0;
};

class Schedule {
 public:
  /// Throws: Failure (Usage) if a phase ends before the one before it.
  Schedule(const SchedulePhases& phases, const BatchCourse& course);

  /// After the last phase its `to` stays. At position 0: the value before training.
  [[nodiscard]] double at(SchedulePosition position) const;

  /// Is there more than one value?
  [[nodiscard]] bool varies() const { return varies_; }
  /// Where phases end if no step is skipped, in steps; maybe between two.
  [[nodiscard]] const std::vector<double>& ends() const { return ends_; }

 private:
  struct Phase {
    bool is_in_tokens;
    double begin, end;  // in that unit
    double from, to;
    SchedulePhase::Shape shape;

    [[nodiscard]] double at(double position) const;
  };

  std::vector<Phase> phases_;
  std::vector<double> ends_;
  bool varies_ = false;
};

/// Step t of a run that skips none.
SchedulePosition planned_position(const BatchCourse& course, uint64_t step);

}  // namespace ciuic::core
