// SPDX-License-Identifier: MIT
//
// Name patterns: * is any text, ? is any one character.
#pragma once

#include <cstddef>
#include <string_view>

namespace ciuic::plugins::adamw {

/// Does the whole of `text` match? Linear but for repeated stars.
inline bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;  // the last * seen, and where its text ended so far
  size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

}  // namespace ciuic::plugins::adamw
