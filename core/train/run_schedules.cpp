// SPDX-License-Identifier: MIT
#include "core/train/run_schedules.h"

#include <utility>

namespace ciuic::core {

RunSchedules::RunSchedules(const RunConfig& config, BatchCourse course_of_run)
    : course(std::move(course_of_run)),
      learning_rate(config.schedule.learning_rate, course),
      expert_bias_rate(config.schedule.expert_bias_rate, course),
      gradient_clip_norm(config.clip_norm(), course),
      objective(config.schedule, course) {}

NamedSchedules RunSchedules::all() const {
  NamedSchedules all{{"learning_rate", &learning_rate},
                     {"expert_bias_rate", &expert_bias_rate},
                     {"gradient_clip_norm", &gradient_clip_norm}};
  for (const auto& named : objective.all()) {
    all.push_back(named);
  }
  return all;
}

}  // namespace ciuic::core
