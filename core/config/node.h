// SPDX-License-Identifier: MIT
//
// A TOML value that knows where it stands: what the reader makes, so that nothing else knows the
// parser. Plain values; copied freely.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/config/problem.h"

namespace ciuic::core {

struct Entry;

struct Node {
  using List = std::vector<Node>;
  using Table = std::vector<Entry>;  // sorted by key
  /// Dates and times: no key takes one, but a message quotes it.
  struct Date {
    std::string text;
  };

  std::variant<bool, int64_t, double, std::string, Date, List, Table> value;
  Where where;
  std::string raw;  // only for an override: its text, so that `--set run.name=7` may be a string

  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&value); }
  [[nodiscard]] const int64_t* integer() const { return std::get_if<int64_t>(&value); }
  [[nodiscard]] const double* real() const { return std::get_if<double>(&value); }
  [[nodiscard]] const std::string* string() const { return std::get_if<std::string>(&value); }
  [[nodiscard]] const List* list() const { return std::get_if<List>(&value); }
  [[nodiscard]] const Table* table() const { return std::get_if<Table>(&value); }
  [[nodiscard]] Table* table() { return std::get_if<Table>(&value); }

  /// The value of a key of this table; nullptr when it isn't there, or this is no table.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] Node* find(std::string_view key);
  /// Sets or replaces a key of this table.
  Node& set(std::string_view key, Node node);
  void erase(std::string_view key);

  /// "an integer", "a list", ...
  [[nodiscard]] std::string_view kind_name() const;
  /// As it would stand in a file: 3, "x", [1, 2], { a = 1 }.
  [[nodiscard]] std::string text() const;
};

struct Entry {
  std::string key;
  Node node;
  /// Where in the text the key stands: sorted by it, entries are in the order of the file.
  int64_t place = 0;
};

/// As TOML writes them: quotes and escapes; the shortest decimal that reads back to the same bits,
/// with a point or an exponent.
std::string toml_string(std::string_view text);
std::string toml_float(double value);
/// A key, quoted where TOML asks for it.
std::string toml_key(std::string_view key);

}  // namespace ciuic::core
