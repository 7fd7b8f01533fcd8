// SPDX-License-Identifier: MIT
//
// A value over training as the file writes it: phases, each with an end, a target and a shape.
// core/train/schedule.h gives the value at a step.
#pragma once

#include <cstdint>
#include <vector>

namespace ciuic::core {

struct SchedulePhase {
  enum class Until { Steps, Tokens, End };
  enum class Shape { Linear, Constant, Cosine, Step, Exponential, Sqrt, InverseSqrt };

  Until until = Until::End;
  int64_t count = 0;  // steps or tokens from the start of training
  double to = 0;      // InverseSqrt has none: 0
  Shape shape = Shape::Constant;

  friend bool operator==(const SchedulePhase&, const SchedulePhase&) = default;
};

/// A plain number in the file is one constant phase to the end.
using SchedulePhases = std::vector<SchedulePhase>;

}  // namespace ciuic::core
