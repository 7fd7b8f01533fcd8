// SPDX-License-Identifier: MIT
#pragma once

// Where each (token, choice) pair goes when tokens are sorted by expert: the index arithmetic of a
// mixture of experts.
//
// A stable counting sort, so rows of one expert keep the order of their tokens. Each expert's group
// of rows is rounded up to a multiple (see MixtureOfExperts::row_multiple); rows that hold no token
// have token -1.

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace ciuic::core {

struct ExpertPlan {
  std::vector<int64_t> counts;   // [E] tokens of each expert
  std::vector<int64_t> offsets;  // [E + 1] first row of each expert's group
  at::Tensor token_of_row_R;     // int32, -1 for padding; on the device
  at::Tensor row_of_choice_NK;   // int32; on the device

  [[nodiscard]] int64_t num_rows() const { return offsets.back(); }
  [[nodiscard]] int64_t group_rows(int64_t expert) const {
    return offsets[expert + 1] - offsets[expert];
  }
};

/// experts: int32 [N, K]. On other devices than the CPU this copies it to the host, once per layer.
ExpertPlan plan_experts(const at::Tensor& experts_NK, int64_t num_experts, int64_t row_multiple);

}  // namespace ciuic::core
