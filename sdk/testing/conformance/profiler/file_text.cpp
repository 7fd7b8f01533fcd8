// SPDX-License-Identifier: MIT
#include "file_text.hpp"

#include <cctype>
#include <cstddef>

namespace ciuic::testing::profiler {
namespace {

class Json {
 public:
  explicit Json(std::string_view text) : text_(text) {}
  bool whole() {
    if (!value(0)) {
      return false;
    }
    space();
    return at_ == text_.size();
  }

 private:
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char c) {
    space();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }
  void space() {
    while (at_ < text_.size() &&
           (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) {
      ++at_;
    }
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) {
      return false;
    }
    at_ += w.size();
    return true;
  }
  bool digits() {
    const size_t from = at_;
    while (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
      ++at_;
    }
    return at_ > from;
  }
  bool number() {
    if (peek() == '-') {
      ++at_;
    }
    if (!(peek() == '0' ? word("0") : digits())) {
      return false;
    }
    if (peek() == '.') {
      ++at_;
      if (!digits()) {
        return false;
      }
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') {
        ++at_;
      }
      return digits();
    }
    return true;
  }
  bool string() {
    if (!accept('"')) {
      return false;
    }
    while (at_ < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[at_++]);
      if (c == '"') {
        return true;
      }
      if (c < 0x20) {
        return false;
      }
      if (c == '\\' && !escape()) {
        return false;
      }
    }
    return false;
  }
  bool escape() {
    const char c = peek();
    ++at_;
    if (c != 'u') {
      return c != '\0' && std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    }
    for (int i = 0; i < 4; ++i, ++at_) {
      if (std::isxdigit(static_cast<unsigned char>(peek())) == 0) {
        return false;
      }
    }
    return true;
  }
  bool value(int depth) {
    space();
    if (depth > 100) {
      return false;
    }
    switch (peek()) {
      case '{':
        return list('}', depth, true);
      case '[':
        return list(']', depth, false);
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }
  bool list(char end, int depth, bool has_names) {
    ++at_;
    if (accept(end)) {
      return true;
    }
    do {
      if (has_names && (space(), !string() || !accept(':'))) {
        return false;
      }
      if (!value(depth + 1)) {
        return false;
      }
    } while (accept(','));
    return accept(end);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

bool is_json(std::string_view text) { return Json(text).whole(); }

long csv_rows(std::string_view text) {
  long rows = 0;
  size_t columns = 0;
  for (size_t at = 0; at < text.size(); ++rows) {
    size_t count = 1;
    bool is_quoted = false;
    bool is_start = true;  // of a cell
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '"' && (is_quoted || is_start)) {
        is_quoted = !is_quoted || (at + 1 < text.size() && text[at + 1] == '"' && ++at > 0);
      } else if (!is_quoted && (c == '\n' || c == ',')) {
        if (c == '\n') {
          ++at;
          break;
        }
        ++count;
        is_start = true;
        continue;
      } else if (c == '"' && !is_quoted) {
        return -1;  // a quote inside a bare cell
      }
      is_start = false;
    }
    if (is_quoted || (rows > 0 && count != columns)) {
      return -1;
    }
    columns = count;
  }
  return rows;
}

}  // namespace ciuic::testing::profiler
