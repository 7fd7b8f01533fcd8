// SPDX-License-Identifier: MIT
//
// Times and lists of ranks as messages show them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ciuic::plugins {

/// "1.500 s"
inline std::string to_seconds(std::chrono::nanoseconds t) {
  const std::string text = std::to_string(std::chrono::duration<double>(t).count());
  return text.substr(0, text.find('.') + 4) + " s";
}

/// "rank 3", "ranks 0, 2"
inline std::string name_ranks(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace ciuic::plugins
