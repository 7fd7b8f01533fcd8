// SPDX-License-Identifier: MIT
#include "core/data/tokenizer/character.h"

#include "core/data/tokenizer/pattern.h"

namespace ciuic::core {
namespace {

constexpr const char* kKey = "added_tokens";

/// The last character of valid UTF-8.
std::string_view last_of(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    --begin;
    if ((static_cast<unsigned char>(text[begin]) & 0xC0) != 0x80) {
      break;
    }
  }
  return text.substr(begin);
}

/// Rare enough that a thread makes its own scratch each time.
size_t match_at_begin(const Pattern& pattern, std::string_view text) {
  Pattern::Scratch scratch;
  Pattern::Range range;
  const bool found = pattern.find(text, 0, false, range, scratch) == Pattern::Found::Match;
  return found && range.begin == 0 ? range.end : 0;
}

bool is_word(std::string_view character) {
  static const Pattern pattern = Pattern::regex("[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}]", kKey);
  return !character.empty() && match_at_begin(pattern, character) > 0;
}

bool is_space(std::string_view character) {
  static const Pattern pattern = Pattern::regex("\\s", kKey);
  return !character.empty() && match_at_begin(pattern, character) > 0;
}

std::string_view first_of(std::string_view text) {
  size_t end = text.empty() ? 0 : 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    ++end;
  }
  return text.substr(0, end);
}

}  // namespace

size_t spaces_at_end(std::string_view text) {
  size_t count = 0;
  for (std::string_view last = last_of(text); is_space(last); last = last_of(text)) {
    count += last.size();
    text.remove_suffix(last.size());
  }
  return count;
}

size_t spaces_at_begin(std::string_view text) {
  size_t count = 0;
  for (std::string_view first = first_of(text); is_space(first); first = first_of(text)) {
    count += first.size();
    text.remove_prefix(first.size());
  }
  return count;
}

bool ends_with_word(std::string_view text) { return is_word(last_of(text)); }
bool begins_with_word(std::string_view text) { return is_word(first_of(text)); }

}  // namespace ciuic::core
