// SPDX-License-Identifier: MIT
#include "core/model/expert_plan.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

namespace ciuic::core {

ExpertPlan plan_experts(const at::Tensor& experts_NK, int64_t num_experts, int64_t row_multiple) {
  const at::Tensor experts = experts_NK.cpu();
  const int64_t choices = experts.size(1);
  const int64_t pairs = experts.numel();
  const auto* expert_of = experts.const_data_ptr<int32_t>();

  ExpertPlan plan;
  plan.counts.assign(num_experts, 0);
  for (int64_t i = 0; i < pairs; ++i) {
    ++plan.counts[expert_of[i]];
  }
  plan.offsets.assign(num_experts + 1, 0);
  for (int64_t e = 0; e < num_experts; ++e) {
    const int64_t rows = (plan.counts[e] + row_multiple - 1) / row_multiple * row_multiple;
    plan.offsets[e + 1] = plan.offsets[e] + rows;
  }

  const at::TensorOptions host = experts.options();
  at::Tensor token_of_row = at::empty({plan.num_rows()}, host);
  at::Tensor row_of_choice = at::empty(experts.sizes(), host);
  auto* tokens = token_of_row.mutable_data_ptr<int32_t>();
  auto* rows = row_of_choice.mutable_data_ptr<int32_t>();
  std::fill_n(tokens, plan.num_rows(), -1);
  std::vector<int64_t> next(plan.offsets.begin(), plan.offsets.end() - 1);
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t row = next[expert_of[i]]++;
    tokens[row] = static_cast<int32_t>(i / choices);
    rows[i] = static_cast<int32_t>(row);
  }
  plan.token_of_row_R = token_of_row.to(experts_NK.device());
  plan.row_of_choice_NK = row_of_choice.to(experts_NK.device());
  return plan;
}

}  // namespace ciuic::core
