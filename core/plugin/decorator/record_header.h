// SPDX-License-Identifier: MIT
//
// The first record of a call log: whose calls these are, and what a replay needs to make the same
// instance again.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/plugin/decorator/call_log.h"
#include "core/plugin/decorator/decorate.h"

namespace ciuic::core {

/// Where a record is written: one file a rank.
std::string record_path(const RecordSpec& spec, const DecoratorContext& context);

LogValue record_header(const DecoratorContext& context);

struct RecordHeader {
  uint32_t kind = 0;
  std::string plugin;
  std::string version;
  TomlEntries options;
  int rank = 0;
  int world = 1;
  bool has_data = false;
  std::vector<std::pair<uint64_t, uint64_t>> lengths;  // so many rows of so many tokens
};

/// Throws LogMismatch.
RecordHeader read_record_header(const LogValue& header);

}  // namespace ciuic::core
