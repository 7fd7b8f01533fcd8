// SPDX-License-Identifier: MIT
#include "core/train/schedule.h"

#include <cmath>
#include <numbers>
#include <string>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

double end_of(const SchedulePhase& phase, int64_t total_steps, int64_t step_tokens) {
  switch (phase.until) {
    case SchedulePhase::Until::Steps:
      return static_cast<double>(phase.count);
    case SchedulePhase::Until::Tokens:
      return static_cast<double>(phase.count) / static_cast<double>(step_tokens);
    case SchedulePhase::Until::End:
      break;
  }
  return static_cast<double>(total_steps);
}

}  // namespace

Schedule::Schedule(const SchedulePhases& phases, int64_t total_steps, int64_t step_tokens) {
  double begin = 0;
  double from = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const SchedulePhase& phase = phases[i];
    double end = end_of(phase, total_steps, step_tokens);
    if (end < begin && phase.until == SchedulePhase::Until::End) {
      end = begin;  // the run is shorter than the phases before: they never come to this one
    }
    if (end < begin) {
      throw Failure(
          ExitCode::Usage,
          "schedule: phase " + std::to_string(i) + " ends after " + std::to_string(end) +
              " steps, before the one in front of it (" + std::to_string(begin) + ")",
          "put the phases in order; a step has " + std::to_string(step_tokens) + " tokens");
    }
    phases_.push_back({begin, end, from, phase.to, phase.shape});
    begin = end;
    from = phase.to;
  }
}

double Schedule::at(int64_t t) const {
  const auto position = static_cast<double>(t);
  for (const Phase& phase : phases_) {
    if (position > phase.end || phase.begin == phase.end) {
      continue;
    }
    if (position == phase.end) {
      return phase.to;
    }
    const double done = position - phase.begin;
    const double length = phase.end - phase.begin;
    switch (phase.shape) {
      case SchedulePhase::Shape::Linear:
        return phase.from + (phase.to - phase.from) * done / length;
      case SchedulePhase::Shape::Cosine:
        return phase.to +
               (phase.from - phase.to) * (0.5 * (1 + std::cos(std::numbers::pi * (done / length))));
      // Both hold `to` from the first step after the phase before; "step" says that this is a jump.
      case SchedulePhase::Shape::Constant:
      case SchedulePhase::Shape::Step:
        return phase.to;
    }
  }
  return phases_.empty() ? 0 : phases_.back().to;
}

}  // namespace ciuic::core
