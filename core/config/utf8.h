// SPDX-License-Identifier: MIT
//
// Is it UTF-8? Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace ciuic::core {

/// The offset of the first byte that does not belong to a well-formed sequence; text.size() if all
/// is well.
size_t first_invalid_utf8(std::string_view text);

inline bool is_utf8(std::string_view text) { return first_invalid_utf8(text) == text.size(); }

}  // namespace ciuic::core
