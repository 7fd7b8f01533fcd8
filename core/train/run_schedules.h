// SPDX-License-Identifier: MIT
//
// Every value that a run file schedules, along the course of its batches.
#pragma once

#include <string>
#include <vector>

#include "core/config/run_config.h"
#include "core/train/batch_course.h"
#include "core/train/objective_schedule.h"
#include "core/train/schedule.h"

namespace ciuic::core {

struct RunSchedules {
  /// Throws: Failure (Usage) if phases of one value are not in order.
  RunSchedules(const RunConfig& config, BatchCourse course_of_run);

  BatchCourse course;
  Schedule learning_rate;
  Schedule expert_bias_rate;
  Schedule gradient_clip_norm;  // 0: no clipping
  ObjectiveSchedule objective;

  /// All but the batch, by their keys in [schedule].
  [[nodiscard]] NamedSchedules all() const;
  /// Phases that no step of this run is in, one sentence each.
  [[nodiscard]] std::vector<std::string> unused_phases() const;
};

}  // namespace ciuic::core
