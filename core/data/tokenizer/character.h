// SPDX-License-Identifier: MIT
//
// What stands at the ends of a text: words and spaces, by Unicode's classes.
#pragma once

#include <cstddef>
#include <string_view>

namespace ciuic::core {

/// Bytes of white space (White_Space) at the end, at the begin.
size_t spaces_at_end(std::string_view text);
size_t spaces_at_begin(std::string_view text);

/// Is the last character, the first, of a word: a letter, mark, decimal digit or connector?
bool ends_with_word(std::string_view text);
bool begins_with_word(std::string_view text);

}  // namespace ciuic::core
