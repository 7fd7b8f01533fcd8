// SPDX-License-Identifier: MIT
//
// What a run demands of the files that it loads: [plugins] of its file, or defaults.
#pragma once

#include <chrono>
#include <string>

#include "core/plugin/trusted_file.h"

namespace ciuic::core {

struct LoadRules {
  Trust trust = Trust::Owner;
  std::string lock;                                 // a lock file; empty: none
  std::chrono::milliseconds probe_timeout{20'000};  // for one step of one file
};

}  // namespace ciuic::core
