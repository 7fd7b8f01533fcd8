// SPDX-License-Identifier: MIT
//
// The shortest run file that is good, for tests to add to.
#pragma once

#include <string>
#include <vector>

#include "core/config/run_config.h"

namespace ciuic::core {

/// Lines 1 to 6; what a test adds starts at line 7.
inline const std::string kMinimal =
    "[run]\n"
    "steps = 200\n"
    "[model]\n"
    "preset = \"tiny\"\n"
    "[data]\n"
    "train = [\"a.txt\"]\n";

inline Loaded parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_config(text, "x.toml", overrides);
}

/// All problems as a person sees them, one a line.
inline std::string problems_of(const Loaded& loaded) { return format(loaded.problems); }

}  // namespace ciuic::core
