// SPDX-License-Identifier: MIT
#pragma once

// One projection of all experts of a layer as a single grouped product, for a precision policy that
// takes it: rows are sorted by expert, and W is [E, out, in].
//
// It needs the experts' matrices, and where it writes gradients those, at equal distances in memory,
// as a flat bucket has them. Elsewhere each expert is a product of its own.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/expert_plan.h"
#include "core/model/gradient.h"
#include "core/model/policy_products.h"

namespace ciuic::core {

class ExpertGroup final {
 public:
  /// `first`: that projection of expert 0; the next expert's stands `step` bindings further on.
  ExpertGroup(const Bound* first, int64_t num_experts, int64_t step, const ExpertPlan& plan);

  /// The policy takes this pass, and memory allows it.
  [[nodiscard]] bool takes(ProductPass pass) const;

  /// out [R, out] = x [R, in] W^T, expert by expert.
  void forward_out(const at::Tensor& out, const at::Tensor& x) const;
  /// dx (+)= dy W
  void backward_out(const at::Tensor& dx, const at::Tensor& dy, bool adds = false) const;
  /// grad (+)= dy^T x; zeros, where it overwrites, for experts without rows.
  void accumulate_gradients(const at::Tensor& dy, const at::Tensor& x) const;

 private:
  [[nodiscard]] bool has_equal_overwrite() const;
  void compute(ProductPass pass, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
               bool adds) const;

  const Bound* first_;
  int64_t num_experts_, step_;
  at::Tensor group_ends_E_;
  at::Tensor value_EOI_, grad_EOI_;  // undefined where distances differ
};

}  // namespace ciuic::core
