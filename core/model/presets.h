// SPDX-License-Identifier: MIT
#pragma once

// The files of configs/presets as text inside the binary, so that `preset = "tiny"` works from any
// folder. The source is generated (presets.cpp.in).

#include <span>
#include <string_view>
#include <utility>

namespace ciuic::core {

/// (name, text of its config.json), sorted by name.
std::span<const std::pair<std::string_view, std::string_view>> preset_files();

}  // namespace ciuic::core
