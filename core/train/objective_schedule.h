// SPDX-License-Identifier: MIT
//
// The weights of the objective's terms over training, from the run file's [schedule].
#pragma once

#include "core/config/run_config.h"
#include "core/model/objective.h"
#include "core/train/schedule.h"

namespace ciuic::core {

class ObjectiveSchedule {
 public:
  ObjectiveSchedule(const ScheduleSection& section, int64_t total_steps, int64_t step_tokens);

  /// What step t minimises, t from 1; `seed` is the caller's.
  [[nodiscard]] Objective at(int64_t t) const;

 private:
  Schedule balance_, device_balance_, communication_balance_, router_z_, prediction_, router_noise_;
};

}  // namespace ciuic::core
