// SPDX-License-Identifier: MIT
//
// Starts the ranks of a run as direct children and watches them: the first that fails takes the run
// down, a stop request reaches all of them, and nothing is left behind. Links no LibTorch and
// allocates nothing of a run's size.
#pragma once

#include <string>
#include <vector>

namespace ciuic::core {

struct LaunchRequest {
  std::string worker;                  // the executable of a rank
  std::vector<std::string> arguments;  // for every rank
  int ranks = 1;
  int threads = 1;             // per rank
  bool has_own_cores = false;  // each rank (rank_cores.h)
  bool needs_store = true;     // give rank 0 a listening socket for the rendezvous
  int lock_fd = -1;        // inherited by rank 0: the run's folder stays locked as long as it lives
  std::string log_folder;  // named in the message about a rank that died
  std::string stop_notice = "stopping after this step, with a checkpoint";  // to the first signal
  std::string after_stop = "the last checkpoint counts, if there is one";   // to the second one
  std::string after_kill = "start the same command again to go on from the last checkpoint";
};

/// The exit code of the run: 0, that of the first failure, or 75 / 130 / 143 after a stop. A rank says
/// in its pipe that it is done (last_words.h), and an exit code without that counts for nothing: 3
/// when its breadcrumbs name the plugin that ended it, else 5; also 5 for one that a signal ended. Prints the last line on stderr itself. Throws Failure (Environment)
/// when a rank cannot be started.
int launch(const LaunchRequest& request);

}  // namespace ciuic::core
