// SPDX-License-Identifier: MIT
//
// Which parameters are matrices for Muon: those of two dimensions, but for the ones that AdamW
// serves better (Keller Jordan's Muon, and Moonlight, arXiv:2502.16982, section 2.2): embedding,
// output head, and here routers.
#pragma once

#include <string>
#include <vector>

#include <ciuic/optimizer.hpp>

namespace ciuic::plugins::muon {

class MatrixChoice {
 public:
  /// Patterns of matrices that AdamW updates; empty: the default ones.
  explicit MatrixChoice(std::vector<std::string> adamw);

  /// Is it updated as a matrix? Throws UNIMPLEMENTED for one of which this rank has a piece only.
  [[nodiscard]] bool is_matrix(const ciuic_param& param) const;

 private:
  std::vector<std::string> adamw_;
};

}  // namespace ciuic::plugins::muon
