// SPDX-License-Identifier: MIT
//
// Looks on while a run's steps are made: what `ciuic bench step` measures with. Every rank has one,
// or none has. Such a run leaves nothing behind: a stop makes no checkpoint.
#pragma once

#include <cstdint>

namespace ciuic::core {

class Session;
class StartupClock;

/// A step that is over.
struct ObservedStep {
  uint64_t step = 0;
  double tokens = 0;  // of all ranks
  uint32_t row_tokens = 0;
  uint32_t micro_batches = 1;  // of each rank
};

class StepObserver {
 public:
  virtual ~StepObserver() = default;

  /// Before a step, at the same place on all ranks, so collectives are allowed. False: enough is
  /// seen, and the run ends here.
  virtual bool begin_step(Session& session) = 0;
  virtual void end_step(const ObservedStep& step) = 0;
  /// After the last step, collective too.
  virtual void finish(Session& session, const StartupClock& startup) = 0;
};

}  // namespace ciuic::core
