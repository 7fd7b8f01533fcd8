// SPDX-License-Identifier: MIT
//
// Everything that can be wrong with a run and be known without one: the file, the model, plugins
// and their options, the data, the device. Done in a child process, so that a plugin which links
// LibTorch does not stay in the launcher, and one that crashes at load does not take it along.
#pragma once

#include "core/train/run_plan.h"

namespace ciuic::tools {

/// What the child does: throws Failure.
void check_run(const core::PlanRequest& request, core::Log& log);

/// Runs check_run in a child that prints what is wrong. 0, or the exit code.
int check_run_in_child(const core::PlanRequest& request, core::Log& log);

}  // namespace ciuic::tools
