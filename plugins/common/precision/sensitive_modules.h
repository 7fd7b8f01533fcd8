// SPDX-License-Identifier: MIT
//
// Modules whose few numbers decide much, and that every policy of the tree therefore leaves in
// fp32: norms, the router's gate and its bias. DeepSeek-V3 (arXiv:2412.19437, sec. 3.3.1) keeps
// them wide even under fp8.
#pragma once

#include <string_view>

namespace ciuic::plugins::precision {

inline bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

inline bool is_sensitive(std::string_view module) {
  return module.find("norm") != std::string_view::npos || ends_with(module, ".mlp.gate") ||
         ends_with(module, ".e_score_correction_bias");
}

}  // namespace ciuic::plugins::precision
