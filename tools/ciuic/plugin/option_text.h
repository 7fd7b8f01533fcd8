// SPDX-License-Identifier: MIT
//
// A plugin's options in words: as `inspect` and `schema` show them, and as they stand in a file.
#pragma once

#include <string>

#include "core/plugin/descriptor_info.h"

namespace ciuic::tools {

/// A plugin's text on one line: control characters become spaces, so that it can neither break a
/// comment of a file nor move a terminal's cursor.
std::string one_line(std::string text);
/// "integer", "size", "list of strings", ...
std::string type_text(uint32_t type);
/// A value as one would write it in the file: "64MiB", 0.9, ["a", "b"].
std::string value_text(uint32_t type, const core::OptionValue& value);
/// "1 to 10", "0.0 or more", "a | b", or "".
std::string range_text(const core::OptionInfo& option);
/// "required, moves the loss", or "".
std::string flags_text(const core::OptionInfo& option);
/// "RELOADABLE, DETERMINISTIC", or "none".
std::string descriptor_flags_text(uint32_t flags);

}  // namespace ciuic::tools
