// SPDX-License-Identifier: MIT
#include "core/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

/// A place in the run as planned, in both units.
struct Place {
  double steps = 0;
  double tokens = 0;

  [[nodiscard]] double in(bool is_in_tokens) const { return is_in_tokens ? tokens : steps; }
};

bool is_measured_in_tokens(const SchedulePhase& phase, const BatchCourse& course) {
  return phase.until == SchedulePhase::Until::Tokens ||
         (phase.until == SchedulePhase::Until::End && course.is_in_tokens());
}

Place end_of(const SchedulePhase& phase, const BatchCourse& course) {
  const auto count = static_cast<double>(phase.count);
  switch (phase.until) {
    case SchedulePhase::Until::Steps:
      return {count, course.tokens_at(count)};
    case SchedulePhase::Until::Tokens:
      return {course.steps_at(count), count};
    case SchedulePhase::Until::End:
      break;
  }
  return {static_cast<double>(course.total_steps()), course.total_tokens()};
}

Failure out_of_order(size_t i, const Place& begin, const Place& end, const BatchCourse& course) {
  return Failure(ExitCode::Usage,
                 "schedule: phase " + std::to_string(i) + " ends after " +
                     std::to_string(end.steps) + " steps, before the one in front of it (" +
                     std::to_string(begin.steps) + ")",
                 "put the phases in order; a step has " + std::to_string(course.of_step(1).tokens) +
                     " tokens" + (course.is_constant() ? "" : " at first"));
}

}  // namespace

Schedule::Schedule(const SchedulePhases& phases, const BatchCourse& course) {
  Place begin;
  double from = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const SchedulePhase& phase = phases[i];
    const bool is_in_tokens = is_measured_in_tokens(phase, course);
    Place end = end_of(phase, course);
    if (end.in(is_in_tokens) < begin.in(is_in_tokens)) {
      if (phase.until != SchedulePhase::Until::End) {
        throw out_of_order(i, begin, end, course);
      }
      end = begin;  // the run is shorter than the phases before: they never come to this one
    }
    Phase& added = phases_.emplace_back(Phase{is_in_tokens, begin.in(is_in_tokens),
                                              end.in(is_in_tokens), from, phase.to, phase.shape});
    if (phase.shape == SchedulePhase::Shape::InverseSqrt) {
      added.to = added.end > 0 ? from * std::sqrt(added.begin / added.end) : from;
    }
    ends_.push_back(end.steps);
    begin = end;
    from = added.to;
  }
  varies_ = std::any_of(phases_.begin(), phases_.end(), [&](const Phase& phase) {
    const bool holds =
        phase.shape == SchedulePhase::Shape::Constant || phase.shape == SchedulePhase::Shape::Step;
    return phase.to != phases_.front().to || (!holds && phase.from != phase.to);
  });
}

double Schedule::at(SchedulePosition position) const {
  for (const Phase& phase : phases_) {
    const double here = phase.is_in_tokens ? position.tokens : position.updates;
    if (here <= phase.end && phase.begin != phase.end) {
      return here == phase.end ? phase.to : phase.at(here);
    }
  }
  return phases_.empty() ? 0 : phases_.back().to;
}

double Schedule::Phase::at(double position) const {
  // After skipped steps a phase may begin a little before its place in the plan.
  const double done = std::max(0.0, position - begin);
  const double length = end - begin;
  switch (shape) {
    case SchedulePhase::Shape::Linear:
      return from + (to - from) * done / length;
    case SchedulePhase::Shape::Cosine:
      return to + (from - to) * (0.5 * (1 + std::cos(std::numbers::pi * (done / length))));
    case SchedulePhase::Shape::Exponential:
      return from * std::pow(to / from, done / length);
    case SchedulePhase::Shape::Sqrt:
      return from + (to - from) * std::sqrt(done / length);
    case SchedulePhase::Shape::InverseSqrt:
      return from * std::sqrt(begin / std::max(begin, position));
    // Both hold `to` from the first step after the phase before; "step" says that this is a jump.
    case SchedulePhase::Shape::Constant:
    case SchedulePhase::Shape::Step:
      break;
  }
  return to;
}

SchedulePosition planned_position(const BatchCourse& course, uint64_t step) {
  const auto steps = static_cast<double>(step);
  return {steps, course.tokens_at(steps)};
}

}  // namespace ciuic::core
