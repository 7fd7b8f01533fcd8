// SPDX-License-Identifier: MIT
//
// Seconds since a moment, for metrics.
#pragma once

#include <chrono>

namespace ciuic::core {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace ciuic::core
