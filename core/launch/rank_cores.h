// SPDX-License-Identifier: MIT
//
// Cores of its own for each rank: no rank's threads, and no library's helpers, run on another's.
#pragma once

#include <sched.h>

namespace ciuic::core {

/// While this lives, the calling thread, and so what it starts, may use only the cores of one rank:
/// those from rank * threads on, of the cores that it may use itself.
class RankCores {
 public:
  /// Throws Failure (Environment) where there are too few.
  RankCores(int rank, int threads);
  RankCores(const RankCores&) = delete;
  RankCores& operator=(const RankCores&) = delete;
  ~RankCores();

 private:
  cpu_set_t before_;
};

}  // namespace ciuic::core
