// SPDX-License-Identifier: MIT
#pragma once

// Which of a layer's routed experts one rank of an expert group has: a range of equal length on all.

#include <cstdint>

namespace ciuic::core {

struct ExpertShare {
  int64_t rank = 0;   // in the expert group
  int64_t ranks = 1;  // divides the number of experts

  [[nodiscard]] int64_t count(int64_t num_experts) const { return num_experts / ranks; }
  [[nodiscard]] int64_t first(int64_t num_experts) const { return rank * count(num_experts); }
};

}  // namespace ciuic::core
