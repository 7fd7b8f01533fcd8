// SPDX-License-Identifier: MIT
//
// A value of the [model] table as JSON, which is what ModelConfig::set takes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/config/node.h"

namespace ciuic::core {

/// TOML has no null: the string "none" stands for it. A date becomes its text.
nlohmann::json model_value(const Node& node);

}  // namespace ciuic::core
