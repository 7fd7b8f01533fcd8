// SPDX-License-Identifier: MIT
#include "core/log/visible.h"

#include <algorithm>

#include "core/config/utf8.h"

namespace ciuic::core {
namespace {

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F;
}

void show(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '\n' || c == '\r') {
    out += c == '\n' ? "\\n" : "\\r";
  } else {
    out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
}

/// U+0080 to U+009F in two bytes: terminals obey them as they obey ESC and a letter.
bool is_c1(std::string_view text, size_t at) {
  return text[at] == '\xC2' && at + 1 < text.size() &&
         static_cast<unsigned char>(text[at + 1]) < 0xA0;
}

}  // namespace

std::string visible(std::string_view text, Newlines newlines) {
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    return std::string(text);
  }
  std::string out;
  size_t valid = first_invalid_utf8(text);  // up to there
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_high = static_cast<unsigned char>(c) >= 0x80;
    if (i == valid) {
      show(out, c);
      valid = i + 1 + first_invalid_utf8(text.substr(i + 1));
    } else if (is_high && is_c1(text, i)) {
      show(out, text[++i]);
    } else if (is_high || is_plain(c) || c == '\t' || (c == '\n' && newlines == Newlines::Kept)) {
      out += c;
    } else {
      show(out, c);
    }
  }
  return out;
}

}  // namespace ciuic::core
