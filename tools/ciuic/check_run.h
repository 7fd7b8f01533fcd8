// SPDX-License-Identifier: MIT
//
// Everything that can be wrong with a run and be known without one: the file, the model, plugins
// and their options, the data, the device. What plugins say of themselves comes from ciuic-probe;
// only a model that is read by a checkpoint plugin (model.from) runs plugin code, so all this is
// done in a child process.
#pragma once

#include <functional>

#include "core/train/run_plan.h"

namespace ciuic::tools {

/// What the child does: throws Failure. The plan, with warnings that nobody was told yet.
core::RunPlan check_run(const core::PlanRequest& request, core::Log& log);

/// Runs `work` in a child that prints what is wrong. 0, or the exit code.
int in_child(const std::function<void()>& work);

}  // namespace ciuic::tools
