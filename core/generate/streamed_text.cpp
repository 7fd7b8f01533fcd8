// SPDX-License-Identifier: MIT
#include "core/generate/streamed_text.h"

#include <algorithm>
#include <utility>

#include "core/config/utf8.h"

namespace ciuic::core {
namespace {

// Bytes of a character that begins with this one; 1 for what begins none.
size_t character_bytes(unsigned char lead) {
  return lead >= 0xF0 && lead <= 0xF4 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 1;
}

// May more bytes make a character of it?
bool is_unfinished(std::string_view text) {
  if (text.size() >= character_bytes(static_cast<unsigned char>(text[0]))) {
    return false;
  }
  return std::all_of(text.begin() + 1, text.end(),
                     [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; });
}

// Takes whole characters from the front of `text`, with U+FFFD for each byte that belongs to none;
// an unfinished one at the end stays.
std::string take_characters(std::string_view& text) {
  std::string out;
  while (!text.empty()) {
    const size_t valid = first_invalid_utf8(text);
    out += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty() || is_unfinished(text)) {
      break;
    }
    out += "\xEF\xBF\xBD";
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace

size_t StreamedText::first_stop() const {
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    first = std::min(first, pending_.find(stop));
  }
  return first;
}

// Where the end of what is pending begins to look like a stop text; its size if it does not.
size_t StreamedText::possible_stop() const {
  for (size_t at = 0; at < pending_.size(); ++at) {
    const std::string_view end = std::string_view(pending_).substr(at);
    for (const std::string& stop : stops_) {
      if (stop.starts_with(end)) {
        return at;
      }
    }
  }
  return pending_.size();
}

std::string StreamedText::push(std::string_view bytes) {
  if (has_stopped_) {
    return {};
  }
  pending_ += bytes;
  if (const size_t stop = first_stop(); stop != std::string::npos) {
    has_stopped_ = true;
    pending_.resize(stop);
    return {};  // the rest comes with finish()
  }
  const size_t end = possible_stop();
  std::string_view text = std::string_view(pending_).substr(0, end);
  std::string shown = take_characters(text);
  pending_.erase(0, end - text.size());
  return shown;
}

std::string StreamedText::finish() {
  const std::string rest = std::exchange(pending_, {});
  std::string_view text = rest;
  std::string shown = take_characters(text);
  for (size_t i = 0; i < text.size(); ++i) {
    shown += "\xEF\xBF\xBD";
  }
  return shown;
}

}  // namespace ciuic::core
