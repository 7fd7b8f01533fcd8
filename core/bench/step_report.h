// SPDX-License-Identifier: MIT
//
// What a StepBench found, for a person: figures, and bars for where the time goes.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace ciuic::core {

/// `found`: the object that StepBench wrote.
std::string step_report(const nlohmann::ordered_json& found);

}  // namespace ciuic::core
