// SPDX-License-Identifier: MIT
//
// SIGINT and SIGTERM: the first asks for a checkpoint at the next step, the second ends the process
// at once with 130 or 143.
#pragma once

#include <atomic>

namespace ciuic::core {

class StopRequest {
 public:
  /// Installs the handlers. Once per process.
  static void install();
  /// Has the first signal come?
  [[nodiscard]] static bool is_raised() noexcept { return flag().load(std::memory_order_relaxed); }
  [[nodiscard]] static std::atomic<bool>& flag() noexcept;
};

}  // namespace ciuic::core
