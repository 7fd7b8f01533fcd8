// SPDX-License-Identifier: MIT
//
// Tables of plugins that are not chosen. In a file they may stay, for the day when the choice is
// swapped back; but one of a plugin that is nowhere, and an option given by `--set`, are most likely
// mistakes, and without a word they would have no effect.
#pragma once

#include <string>
#include <vector>

#include "core/train/run_plan.h"

namespace ciuic::core {

/// A warning for each.
[[nodiscard]] std::vector<std::string> unused_tables(const RunPlan& plan);

}  // namespace ciuic::core
