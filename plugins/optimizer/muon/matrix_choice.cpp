// SPDX-License-Identifier: MIT
#include "matrix_choice.h"

#include <algorithm>
#include <utility>

#include <ciuic/name_pattern.hpp>

namespace ciuic::plugins::muon {

MatrixChoice::MatrixChoice(std::vector<std::string> adamw) : adamw_(std::move(adamw)) {
  if (adamw_.empty()) {
    adamw_ = {"*embed*", "*head*", "*mlp.gate.weight"};
  }
}

bool MatrixChoice::is_matrix(const ciuic_param& param) const {
  const auto matches = [&](const std::string& pattern) {
    return matches_pattern(pattern, to_view(param.name));
  };
  if (param.ndim != 2 || std::any_of(adamw_.begin(), adamw_.end(), matches)) {
    return false;
  }
  for (int32_t d = 0; d < 2; ++d) {
    if (param.global_shape != nullptr && param.shape[d] != param.global_shape[d]) {
      throw Error(CIUIC_UNIMPLEMENTED,
                  "optimizer muon: " + std::string(to_view(param.name)) + ": this rank has " +
                      std::to_string(param.shape[d]) + " of " +
                      std::to_string(param.global_shape[d]) + " in dimension " + std::to_string(d) +
                      ", and the rule needs matrices whole; list it in optimizer.muon.adamw, or "
                      "do not split it over ranks");
    }
  }
  return true;
}

}  // namespace ciuic::plugins::muon
