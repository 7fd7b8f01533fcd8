// SPDX-License-Identifier: MIT
//
// Texts one after another, for messages.
#pragma once

#include <string>
#include <string_view>

namespace ciuic::core {

/// joined({"a", "b"}, ", ") is "a, b".
template <typename Texts>
std::string joined(const Texts& texts, std::string_view between) {
  std::string out;
  for (const std::string& text : texts) {
    out += out.empty() ? "" : between;
    out += text;
  }
  return out;
}

}  // namespace ciuic::core
