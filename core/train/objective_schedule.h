// SPDX-License-Identifier: MIT
//
// The weights of the objective's terms over training, from the run file's [schedule].
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/config/run_config.h"
#include "core/model/objective.h"
#include "core/train/schedule.h"

namespace ciuic::core {

/// Schedules by their keys in [schedule].
using NamedSchedules = std::vector<std::pair<std::string_view, const Schedule*>>;

class ObjectiveSchedule {
 public:
  ObjectiveSchedule(const ScheduleSection& section, const BatchCourse& course);

  /// What a step minimises; `seed` is the caller's.
  [[nodiscard]] Objective at(SchedulePosition position) const;
  /// They live as long as this object.
  [[nodiscard]] NamedSchedules all() const;

 private:
  Schedule balance_, device_balance_, communication_balance_, router_z_, prediction_, router_noise_;
};

}  // namespace ciuic::core
