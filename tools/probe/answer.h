// SPDX-License-Identifier: MIT
//
// How the probe speaks: one JSON object a line, on a pipe of its own, so that what a plugin prints
// is never taken for an answer. A line before each step: the last one names the culprit when the
// process ends.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

namespace ciuic::tools {

/// The descriptor that the host handed over.
inline constexpr int kAnswerFd = 3;

void say(const nlohmann::json& line);

/// What comes next, and to which request: {"id": 3, "step": "load"}.
void announce(size_t id, const char* step);

}  // namespace ciuic::tools
