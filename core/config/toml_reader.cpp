// SPDX-License-Identifier: MIT
#include "core/config/toml_reader.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include <toml++/toml.h>

#include "core/config/plain_file.h"

namespace ciuic::core {
namespace {

// ---- before the parser ----

/// Measures nesting without recursion, as toml++ limits that of brackets but not that of dotted
/// keys, and frees its trees recursively. Follows TOML's strings and comments exactly as long as
/// the text is valid, and the parser stops where it isn't.
class NestingScan {
 public:
  explicit NestingScan(std::string_view text) : text_(text) {}

  /// The first line that nests deeper than kMaxConfigDepth, or 0.
  int line_of_excess() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        skip_line();
      } else if (c == '"' || c == '\'') {
        skip_string(c);
      } else {
        take(c);
      }
      if (brackets_ > kMaxConfigDepth || dots_ > kMaxConfigDepth) {
        return line_;
      }
    }
    return 0;
  }

 private:
  void take(char c) {
    ++at_;
    switch (c) {
      case '\n':
        ++line_;
        dots_ = 0;
        break;
      case '.':
        ++dots_;
        break;
      case '[':
      case '{':
        ++brackets_;
        dots_ = 0;
        break;
      case ']':
      case '}':
        brackets_ = std::max(0, brackets_ - 1);
        dots_ = 0;
        break;
      case ',':
      case '=':
        dots_ = 0;
        break;
      default:
        break;
    }
  }

  void skip_line() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool is_long = text_.substr(at_, 3) == three;
    at_ += is_long ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        if (!is_long) {
          return;  // not TOML: the parser stops here
        }
        ++line_;
      }
      if (c == '\\' && quote == '"' && text_.substr(at_ + 1, 1) != "\n") {
        at_ += 2;
        continue;
      }
      if (c == quote && (!is_long || text_.substr(at_, 3) == three)) {
        at_ += is_long ? 3 : 1;
        // A long string may end in up to two quotes of its own.
        for (int i = 0; is_long && i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) {
          ++at_;
        }
        return;
      }
      ++at_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int brackets_ = 0;
  int dots_ = 0;
};

// ---- after the parser ----

Node convert(const toml::node& node, const std::string& file);

Node convert_table(const toml::table& table, const std::string& file) {
  Node::Table entries;
  for (const auto& [key, value] : table) {
    entries.push_back({std::string(key.str()), convert(value, file)});
    const auto& begin = key.source().begin;
    entries.back().place = int64_t{begin.line} << 32 | int64_t{begin.column};
    Node& added = entries.back().node;
    // A table stands at its bracket; any other value is said at its key.
    if (added.table() == nullptr && begin) {
      added.where.line = static_cast<int>(begin.line);
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });
  return {std::move(entries), {}, {}};
}

Node convert(const toml::node& node, const std::string& file) {
  Node out;
  if (const auto* table = node.as_table()) {
    out = convert_table(*table, file);
  } else if (const auto* array = node.as_array()) {
    Node::List list;
    for (const toml::node& element : *array) {
      list.push_back(convert(element, file));
    }
    out.value = std::move(list);
  } else if (const auto* boolean = node.as_boolean()) {
    out.value = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    out.value = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    out.value = real->get();
  } else if (const auto* string = node.as_string()) {
    out.value = string->get();
  } else {
    std::ostringstream text;
    text << toml::node_view<const toml::node>(node);
    out.value = Node::Date{text.str()};
  }
  out.where = {file, static_cast<int>(node.source().begin.line)};
  return out;
}

Node empty_table(const std::string& file) { return {Node::Table{}, {file, 0}, {}}; }

bool is_duplicate(const toml::parse_error& error) {
  return error.description().find("cannot redefine existing") != std::string_view::npos;
}

/// Makes `line` (from 1) a comment of the same length, if it is a key and its value: so that all
/// duplicates are found.
bool comment_out(std::string& text, int line) {
  size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) {
      return false;
    }
    ++begin;
  }
  const size_t first = text.find_first_not_of(" \t", begin);
  if (first == std::string::npos || text[first] == '[' || text[first] == '#' ||
      text[first] == '\n') {
    return false;
  }
  text[first] = '#';
  return true;
}

std::string message_of(const toml::parse_error& error) {
  std::string message(error.description());
  // The parser names its own limits and macros; a person wants the plain sentence.
  constexpr std::string_view kPrefix = "Error while parsing ";
  return message.rfind(kPrefix, 0) == 0 ? "TOML: " + message.substr(kPrefix.size())
                                        : "TOML: " + message;
}

Problem problem_of(const toml::parse_error& error, const std::string& file) {
  const auto& begin = error.source().begin;
  return {file, static_cast<int>(begin.line), static_cast<int>(begin.column), message_of(error)};
}

// ---- overrides ----

/// The value of an override: TOML, or else a bare string.
Node override_value(const std::string& text, const std::string& origin) {
  Node bare{text, {origin, 0}, text};
  std::vector<Problem> ignored;
  const Node parsed = parse_toml("value = " + text, origin, ignored);
  const Node* value = parsed.find("value");
  // More than one key: the text held a line break and a second assignment.
  if (!ignored.empty() || value == nullptr || parsed.table()->size() != 1) {
    return bare;
  }
  if (std::holds_alternative<Node::Date>(value->value)) {
    return bare;
  }
  Node node = *value;
  node.raw = text;
  return node;
}

void relocate(Node& node, const Where& where) {
  node.where = where;
  if (Node::Table* table = node.table()) {
    for (Entry& entry : *table) {
      relocate(entry.node, where);
    }
  } else if (auto* list = std::get_if<Node::List>(&node.value)) {
    for (Node& element : *list) {
      relocate(element, where);
    }
  }
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  std::stringstream stream(path);
  for (std::string part; std::getline(stream, part, '.');) {
    parts.push_back(part);
  }
  if (path.empty() || path.back() == '.') {
    parts.emplace_back();
  }
  return parts;
}

void apply_override(Node& root, const std::string& text, std::vector<Problem>& problems) {
  const size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  const std::string origin = "--set " + path;
  const std::vector<std::string> parts = split_path(path);
  if (equals == std::string::npos || parts.size() < 2 || parts.size() > kMaxConfigDepth ||
      std::any_of(parts.begin(), parts.end(),
                  [](const std::string& part) { return part.empty(); })) {
    problems.push_back({origin, 0, 0, "expected table.key=value, such as run.steps=50"});
    return;
  }
  Node* at = &root;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    Node* next = at->find(parts[i]);
    if (next == nullptr) {
      next = &at->set(parts[i], {Node::Table{}, {origin, 0}, {}});
    }
    if (next->table() == nullptr) {
      problems.push_back(
          {origin, 0, 0, parts[i] + " is " + std::string(next->kind_name()) + ", not a table"});
      return;
    }
    at = next;
  }
  Node value = override_value(text.substr(equals + 1), origin);
  relocate(value, {origin, 0});
  at->set(parts.back(), std::move(value));
}

}  // namespace

Node parse_toml(std::string_view text, const std::string& file, std::vector<Problem>& problems) {
  constexpr int kMaxDuplicates = 20;
  if (text.size() > kMaxConfigBytes) {
    problems.push_back({file, 0, 0,
                        "got " + std::to_string(text.size()) +
                            " bytes; a configuration has at most " +
                            std::to_string(kMaxConfigBytes)});
    return empty_table(file);
  }
  if (const int line = NestingScan(text).line_of_excess(); line > 0) {
    problems.push_back(
        {file, line, 0, "nested deeper than " + std::to_string(kMaxConfigDepth) + " levels"});
    return empty_table(file);
  }
  std::string editable(text);
  for (int duplicates = 0;; ++duplicates) {
    try {
      Node root = convert(toml::parse(std::string_view(editable), file), file);
      root.where = {file, 0};
      return root;
    } catch (const toml::parse_error& error) {
      // What follows a duplicate that was commented out may be the rest of its value: not an error
      // of its own.
      if (duplicates == 0 || is_duplicate(error)) {
        problems.push_back(problem_of(error, file));
      }
      if (!is_duplicate(error) || duplicates == kMaxDuplicates ||
          !comment_out(editable, static_cast<int>(error.source().begin.line))) {
        return empty_table(file);
      }
    }
  }
}

Node read_toml(const std::string& path, std::vector<Problem>& problems) {
  const PlainFile file = read_plain_file(path, kMaxConfigBytes);
  if (!file.problem.empty()) {
    const bool is_other = file.problem.starts_with("is ");
    problems.push_back({path, 0, 0, file.problem + (is_other ? "; expected a TOML file" : "")});
    return empty_table(path);
  }
  return parse_toml(file.bytes, path, problems);
}

void apply_overrides(Node& root, std::span<const std::string> overrides,
                     std::vector<Problem>& problems) {
  for (const std::string& text : overrides) {
    apply_override(root, text, problems);
  }
}

}  // namespace ciuic::core
