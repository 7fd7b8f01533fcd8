// SPDX-License-Identifier: MIT
//
// SIGINT and SIGTERM: the first asks for a checkpoint at the next step, the second ends the process at
// once with 130 or 143.
//
// A rank that ciuic started is signalled by its launcher, which counts for all. A signal from anybody
// else (a scheduler that signals every process of a job) only asks: otherwise one such stop would count
// twice and lose the checkpoint.
#pragma once

#include <atomic>
#include <sys/types.h>

namespace ciuic::core {

class StopRequest {
 public:
  /// Installs the handlers and unblocks both signals, which a launcher starts its ranks with blocked.
  /// Once per process; `launcher` is the process whose second signal ends this one, 0: anybody's.
  static void install(pid_t launcher);
  /// Has the first signal come?
  [[nodiscard]] static bool is_raised() noexcept { return flag().load(std::memory_order_relaxed); }
  [[nodiscard]] static std::atomic<bool>& flag() noexcept;
};

}  // namespace ciuic::core
