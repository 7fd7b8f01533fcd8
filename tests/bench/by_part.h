// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>

#include "core/bench/step_clock.h"

namespace ciuic::core {

/// One entry of what is counted by Part.
inline double of(const std::array<double, kNumParts>& by_part, Part part) {
  return by_part[static_cast<size_t>(part)];
}

}  // namespace ciuic::core
