// SPDX-License-Identifier: MIT
//
// Name patterns: * is any text, ? is any one character. The host's tables of parameters and the
// plugins' options read them alike.
#pragma once

#include <cstddef>
#include <string_view>

namespace ciuic {

/// Does the whole of `name` match? At most pattern times name steps.
inline bool matches_pattern(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string_view::npos;  // the last * seen, and where its text ended so far
  size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

}  // namespace ciuic
