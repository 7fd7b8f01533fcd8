// SPDX-License-Identifier: MIT
//
// The line of metrics.jsonl that begins each attempt of a run: what ran, with which plugins and
// versions, from which step on.
#pragma once

#include <cstdint>

#include "core/train/json_line.h"

namespace ciuic::core {

class Session;

struct Attempt {
  uint64_t number = 1;
  uint64_t steps = 0;  // of the run in all
  uint64_t start_step = 0;
};

[[nodiscard]] JsonLine run_line(const Session& session, const Attempt& attempt);

}  // namespace ciuic::core
