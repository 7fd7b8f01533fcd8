// SPDX-License-Identifier: MIT
#include "core/config/node.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

namespace ciuic::core {
namespace {

template <typename Table>
auto place_of(Table& table, std::string_view key) {
  return std::lower_bound(table.begin(), table.end(), key,
                          [](const Entry& entry, std::string_view k) {
                            return entry.key.compare(k) < 0;  // clang 14 has no < of these two
                          });
}

std::string list_text(const Node::List& list) {
  std::string text = "[";
  for (const Node& node : list) {
    text += (text.size() > 1 ? ", " : "") + node.text();
  }
  return text + "]";
}

std::string table_text(const Node::Table& table) {
  std::string text;
  for (const Entry& entry : table) {
    text += (text.empty() ? " " : ", ") + toml_key(entry.key) + " = " + entry.node.text();
  }
  return text.empty() ? "{}" : "{" + text + " }";
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const Table* t = table();
  if (t == nullptr) {
    return nullptr;
  }
  auto at = place_of(*t, key);
  return at != t->end() && at->key == key ? &at->node : nullptr;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->find(key));
}

Node& Node::set(std::string_view key, Node node) {
  Table& t = std::get<Table>(value);
  auto at = place_of(t, key);
  if (at == t.end() || at->key != key) {
    const int64_t last = std::accumulate(
        t.begin(), t.end(), int64_t{0},
        [](int64_t most, const Entry& entry) { return std::max(most, entry.place); });
    at = t.insert(at, Entry{std::string(key), Node{}, last + 1});
  }
  at->node = std::move(node);
  return at->node;
}

void Node::erase(std::string_view key) {
  if (Table* t = table()) {
    std::erase_if(*t, [&](const Entry& entry) { return entry.key == key; });
  }
}

std::string_view Node::kind_name() const {
  static constexpr std::array<std::string_view, 7> kNames{
      "a boolean", "an integer", "a number", "a string", "a date", "a list", "a table"};
  return kNames[value.index()];
}

std::string Node::text() const {
  struct Writer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return toml_float(v); }
    std::string operator()(const std::string& v) const { return toml_string(v); }
    std::string operator()(const Date& v) const { return v.text; }
    std::string operator()(const List& v) const { return list_text(v); }
    std::string operator()(const Table& v) const { return table_text(v); }
  };
  return std::visit(Writer{}, value);
}

std::string toml_string(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (byte < 0x20 || byte == 0x7f) {
          out += std::string("\\u00") + kHex[byte >> 4] + kHex[byte & 15];
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string toml_float(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value > 0 ? "inf" : "-inf";
  }
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  // 3e-04 is said 3e-4.
  if (const size_t exponent = text.find('e');
      exponent != std::string::npos && text[exponent + 2] == '0') {
    text.erase(exponent + 2, 1);
  }
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string toml_key(std::string_view key) {
  const bool is_bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  return is_bare ? std::string(key) : toml_string(key);
}

}  // namespace ciuic::core
