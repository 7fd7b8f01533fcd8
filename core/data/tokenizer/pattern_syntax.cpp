// SPDX-License-Identifier: MIT
//
// From Oniguruma's syntax (Ruby's) to PCRE2's. What means something else there, or is not known to
// mean the same, is refused by name rather than guessed.
#include <algorithm>
#include <array>

#include "core/data/tokenizer/pattern.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

// White_Space of Unicode. PCRE2's own \s has U+180E too.
constexpr std::string_view kSpaces =
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"
    "\\x{3000}";

constexpr std::array<std::string_view, 38> kCategories{
    "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",  "Mc", "Me", "Mn", "N",  "Nd", "Nl",
    "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S",  "Sc", "Sk", "Sm",
    "So", "Z",  "Zl", "Zp", "Zs", "C",  "Cc", "Cf", "Cn", "Co", "Cs", "L&"};
constexpr std::array<std::string_view, 22> kScripts{
    "Arabic",   "Armenian", "Bengali",  "Bopomofo", "Common", "Cyrillic", "Devanagari", "Ethiopic",
    "Georgian", "Greek",    "Gujarati", "Han",      "Hangul", "Hebrew",   "Hiragana",   "Inherited",
    "Katakana", "Khmer",    "Latin",    "Tamil",    "Thai",   "Tibetan"};

bool has(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Translator {
 public:
  Translator(std::string_view in, const std::string& key) : in_(in), key_(key) {}

  std::string run() {
    while (at_ < in_.size()) {
      switch (in_[at_]) {
        case '\\':
          escape();
          break;
        case '[':
          is_in_class_ ? refuse("a [ inside a class") : open_class();
          break;
        case ']':
          is_in_class_ = false;
          take(1);
          break;
        case '(':
          is_in_class_ ? take(1) : open_group();
          break;
        case '{':
        case '^':
        case '$':
          is_in_class_ ? take(1) : special();
          break;
        case '&':
          if (is_in_class_ && in_.substr(at_, 2) == "&&") {
            refuse("&& inside a class");
          }
          take(1);
          break;
        default:
          take(1);
      }
    }
    if (is_in_class_) {
      refuse("a class without its ]");
    }
    return out_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Failure(ExitCode::Usage, key_ + ": the regular expression has " + what + " at byte " +
                                       std::to_string(at_) + ", which is not supported");
  }

  void take(size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }

  void put(std::string_view text, size_t read) {
    out_ += text;
    at_ += read;
  }

  void open_class() {
    is_in_class_ = true;
    take(1);
    if (in_.substr(at_, 1) == "^") {
      take(1);
    }
    if (in_.substr(at_, 1) == "]") {
      refuse("a ] that opens a class");
    }
  }

  void open_group() {
    if (in_.substr(at_, 2) != "(?") {
      return take(1);
    }
    for (const std::string_view known : {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (in_.substr(at_, known.size()) == known) {
        return take(known.size());
      }
    }
    refuse("\"" + std::string(in_.substr(at_, 4)) + "\"");
  }

  /// {, ^ and $ outside a class. Lines are Ruby's business, possessive {n}+ PCRE2's.
  void special() {
    if (in_[at_] != '{') {
      refuse(std::string("\"") + in_[at_] + "\" outside a class");
    }
    const size_t end = in_.find('}', at_);
    const std::string_view inside =
        end == std::string_view::npos ? "" : in_.substr(at_ + 1, end - at_ - 1);
    if (inside.empty() || inside.size() > 9 || inside[0] < '0' || inside[0] > '9' ||
        inside.find_first_not_of("0123456789,") != std::string_view::npos) {
      refuse("a { that is no {n}, {n,} or {n,m}");
    }
    take(inside.size() + 2);
    if (in_.substr(at_, 1) == "+") {
      refuse("{n}+");
    }
  }

  void escape() {
    const char c = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
    switch (c) {
      case 's':
        return put(is_in_class_ ? std::string(kSpaces) : "[" + std::string(kSpaces) + "]", 2);
      case 'S':
        if (is_in_class_) {
          refuse("\\S inside a class");
        }
        return put("[^" + std::string(kSpaces) + "]", 2);
      case 'p':
      case 'P':
        return property();
      case 'v':
        return put("\\x0b", 2);
      case 'u':
        return code_point(4);
      case 'd':
      case 'D':
      case 'r':
      case 'n':
      case 't':
      case 'f':
        return take(2);
      case 'x':
        return in_.substr(at_ + 2, 1) == "{" ? braced_code_point() : code_point(2);
      default:
        const bool is_mark = c > ' ' && c < 0x7f && !std::isalnum(static_cast<unsigned char>(c));
        if (!is_mark && c != ' ') {
          refuse(std::string("\\") + (c == '\0' ? ' ' : c));
        }
        take(2);
    }
  }

  /// \uHHHH and \xHH; bytes above 7f would be pieces of characters.
  void code_point(size_t digits) {
    const std::string_view hex = in_.substr(at_ + 2, digits);
    if (hex.size() != digits || !is_hex(hex) || (digits == 2 && hex[0] > '7')) {
      refuse("a code point that is none");
    }
    put("\\x{" + std::string(hex) + "}", 2 + digits);
  }

  void braced_code_point() {
    const size_t end = std::min(in_.find('}', at_), in_.size());
    const std::string_view hex = in_.substr(at_ + 3, std::max(end, at_ + 3) - at_ - 3);
    if (end == in_.size() || hex.empty() || hex.size() > 6 || !is_hex(hex)) {
      refuse("a code point that is none");
    }
    take(end - at_ + 1);
  }

  static bool is_hex(std::string_view text) {
    return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  }

  void property() {
    const bool is_negative = in_[at_ + 1] == 'P';
    if (in_.substr(at_ + 2, 1) != "{") {
      refuse("a property without { }");
    }
    const size_t end = std::min(in_.find('}', at_), in_.size());
    std::string_view name = in_.substr(at_ + 3, std::max(end, at_ + 3) - at_ - 3);
    const bool is_turned = !name.empty() && name[0] == '^';
    name.remove_prefix(is_turned ? 1 : 0);
    const bool is_script = has(kScripts, name);
    if (end == in_.size() || (!is_script && !has(kCategories, name))) {
      refuse("the property \"" + std::string(name.substr(0, 40)) + "\"");
    }
    // "sc:": a bare script's name would mean the characters that extend it too.
    put(std::string(is_negative != is_turned ? "\\P{" : "\\p{") + (is_script ? "sc:" : "") +
            std::string(name) + "}",
        end - at_ + 1);
  }

  std::string_view in_;
  const std::string& key_;
  std::string out_;
  size_t at_ = 0;
  bool is_in_class_ = false;
};

}  // namespace

std::string to_pcre2(std::string_view oniguruma, const std::string& key) {
  return Translator(oniguruma, key).run();
}

}  // namespace ciuic::core
