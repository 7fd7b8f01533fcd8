// SPDX-License-Identifier: MIT
//
// The data of a run, as its plan describes it.
#pragma once

#include "core/data/dataset.h"
#include "core/train/run_plan.h"

namespace ciuic::core {

/// The token ids of the byte tokenizer under a model's special tokens.
TokenIds token_ids(const ModelConfig& config);

/// Throws Failure (Usage) with what is wrong with the files.
Dataset open_data(const RunPlan& plan);

}  // namespace ciuic::core
