// SPDX-License-Identifier: MIT
//
// One rank of a training run from start to end: join, assemble, load, train, report. What
// `ciuic-worker train` does.
#pragma once

#include <string>
#include <vector>

#include "core/launch/environment.h"
#include "core/launch/startup_clock.h"
#include "core/log/log.h"
#include "core/train/run_plan.h"
#include "core/train/step_observer.h"

namespace ciuic::core {

struct RankOptions {
  PlanRequest request;
  std::string resume = "auto";  // auto, none or a checkpoint's path
  RankIdentity identity;
  bool is_launched =
      false;  // by ciuic: the folder is claimed, and rank 0 has the rendezvous socket
  std::string run_id;
  int store_fd = -1;
  bool is_quiet = false;
  bool steps_on_lines = false;
  bool watches_numbers = false;
  StepObserver* observer = nullptr;
  StartupClock* startup = nullptr;
};

/// Done or Stopped. Throws Failure.
ExitCode run_rank(const RankOptions& options, Log& log);

}  // namespace ciuic::core
