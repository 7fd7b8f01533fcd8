// SPDX-License-Identifier: MIT
//
// One line of metrics.jsonl: a flat JSON object in the order of its fields. Numbers are the
// shortest decimals that read back to the same bits; a non-finite one is null, with its name in
// "non_finite".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ciuic::core {

class JsonLine {
 public:
  explicit JsonLine(std::string_view type) { add("type", type); }

  JsonLine& add(std::string_view key, std::string_view value);
  JsonLine& add(std::string_view key, const char* value) {
    return add(key, std::string_view(value));
  }
  JsonLine& add(std::string_view key, double value);
  JsonLine& add(std::string_view key, int64_t value);
  JsonLine& add(std::string_view key, uint64_t value);
  JsonLine& add(std::string_view key, int value) { return add(key, int64_t{value}); }
  /// NaN stands for unknown, and is written as null.
  JsonLine& add(std::string_view key, const std::vector<double>& values);
  /// `json` is valid JSON already.
  JsonLine& add_raw(std::string_view key, std::string_view json);

  /// With the closing brace and a newline.
  [[nodiscard]] std::string text() const;

 private:
  std::string body_;
  std::vector<std::string> non_finite_;
};

/// The shortest decimal that reads back to the same bits; "null" for a non-finite one.
std::string json_number(double value);

}  // namespace ciuic::core
