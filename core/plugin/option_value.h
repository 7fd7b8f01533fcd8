// SPDX-License-Identifier: MIT
//
// A ciuic_value that owns what it shows, and its way over a pipe and back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <ciuic/abi/types.h>

namespace ciuic::core {

/// Which member counts is the option's type's to say (CIUIC_TYPE_).
struct OptionValue {
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::vector<std::string> texts;

  static OptionValue of(uint32_t type, const ciuic_value& value);
  /// Throws std::exception when the text is no such value.
  static OptionValue from_json(uint32_t type, const nlohmann::json& json);
  [[nodiscard]] nlohmann::json to_json(uint32_t type) const;

  /// As the ABI shows it, for as long as this lives; a list of strings needs an array of views.
  [[nodiscard]] ciuic_value shown(uint32_t type, std::vector<ciuic_str>& strs) const;
};

/// The type of an option's bounds: that of its elements.
uint32_t bound_type(uint32_t type);

}  // namespace ciuic::core
