// SPDX-License-Identifier: MIT
#include "well_formed.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ciuic::testing {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

/// Length of the sequence that a byte begins; 0: it begins none.
size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead < 0xE0) {
    return 2;
  }
  if (lead >= 0xE0 && lead < 0xF0) {
    return 3;
  }
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit) &&
         (text.size() == 1 || text[0] != '0');
}

bool is_identifiers(std::string_view text) {
  bool empty = true;
  for (const char c : text) {
    if (c == '.' && empty) {
      return false;
    }
    if (c != '.' && c != '-' && !is_digit(c) && !is_lower(c) && !is_upper(c)) {
      return false;
    }
    empty = c == '.';
  }
  return !empty;
}

/// Cuts what stands after the first `mark`, which must be there for a true answer.
bool cut(std::string_view& text, char mark, std::string_view& after) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) {
    return false;
  }
  after = text.substr(at + 1);
  text = text.substr(0, at);
  return true;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(static_cast<unsigned char>(text[i]));
    if (length == 0 || text.size() - i < length) {
      return false;
    }
    uint32_t code =
        static_cast<unsigned char>(text[i]) & (length == 1 ? 0x7FU : 0xFFU >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if ((byte & 0xC0U) != 0x80U) {
        return false;
      }
      code = code << 6 | (byte & 0x3FU);
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      return false;
    }
    i += length;
  }
  return true;
}

bool is_snake_case(std::string_view text) {
  return !text.empty() && is_lower(text[0]) && std::all_of(text.begin(), text.end(), [](char c) {
    return is_lower(c) || is_digit(c) || c == '_';
  });
}

bool is_semantic_version(std::string_view text) {
  std::string_view build;
  std::string_view pre;
  if (cut(text, '+', build) && !is_identifiers(build)) {
    return false;
  }
  if (cut(text, '-', pre) && !is_identifiers(pre)) {
    return false;
  }
  std::string_view minor;
  std::string_view patch;
  return cut(text, '.', minor) && cut(minor, '.', patch) && is_number(text) && is_number(minor) &&
         is_number(patch);
}

}  // namespace ciuic::testing
