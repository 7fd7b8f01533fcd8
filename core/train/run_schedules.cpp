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

std::vector<std::string> RunSchedules::unused_phases() const {
  std::vector<std::string> out;
  const auto total = static_cast<double>(course.total_steps());
  for (const auto& [key, schedule] : all()) {
    double begin = 0;
    for (size_t i = 0; i < schedule->ends().size(); ++i) {
      const double end = schedule->ends()[i];
      const std::string phase = "schedule." + std::string(key) + "[" + std::to_string(i) + "]";
      if (begin >= total) {
        out.push_back(phase + " begins after the last step (" +
                      std::to_string(course.total_steps()) + "): it has no effect");
      } else if (end <= begin) {
        out.push_back(phase + " ends where it begins: only its `to` has an effect");
      }
      begin = end;
    }
  }
  return out;
}

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
