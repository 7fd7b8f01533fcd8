// SPDX-License-Identifier: MIT
//
// Runs a call log again, call by call in the order of their beginnings, and compares results,
// outputs and tensors bit by bit. For kinds whose calls depend on their arguments alone.
#pragma once

#include <map>
#include <string>

#include "core/plugin/decorator/record_header.h"
#include "core/plugin/instance.h"

namespace ciuic::core {

struct ReplayResult {
  uint64_t calls = 0;     // in the log
  uint64_t compared = 0;  // run and compared
  uint64_t skipped = 0;   // not run: the log does not hold them whole
  std::string skipped_why;
  std::string difference;  // the first: "batch_scheduler.plan, call 3: out.items[0].sample: ..."
  std::string cut_off;     // a call that never returned in the log, and did now
};

/// Why logs of this kind cannot be run again; empty: they can.
std::string replay_refusal(const RecordHeader& header);

/// `instance` was made with the header's options. Throws LogMismatch when the log does not fit the
/// kind's functions.
ReplayResult replay(const CallLog& log, const RecordHeader& header, const Instance& instance);

}  // namespace ciuic::core
