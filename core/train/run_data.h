// SPDX-License-Identifier: MIT
//
// The data of a run, as its plan describes it.
#pragma once

#include "core/data/dataset.h"
#include "core/train/run_plan.h"

namespace ciuic::core {

/// What data needs to know of a model.
TokenIds token_ids(const ModelConfig& config);

/// What has to be tokenized first is kept in the run's folder, in tokens/; `log` hears of what takes
/// long. Throws Failure: Usage with what is wrong with the files; Storage when tokens cannot be kept.
Dataset open_data(const RunPlan& plan, Log& log);

}  // namespace ciuic::core
