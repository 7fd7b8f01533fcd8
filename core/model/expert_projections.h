// SPDX-License-Identifier: MIT
#pragma once

// The three projections of all routed experts over rows sorted by expert: one product per expert
// and projection, or one grouped product per projection where the precision policy takes those.
//
// Shapes: R rows, D hidden, I expert width, E experts.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/expert_group.h"
#include "core/model/expert_plan.h"
#include "core/model/gradient.h"

namespace ciuic::core {

class ExpertProjections final {
 public:
  /// `experts`: gate_proj, up_proj, down_proj of each expert. All must outlive this object.
  ExpertProjections(Bindings experts, const ExpertPlan& plan);

  /// out [R, 2I] = [x gate^T | x up^T]
  void gate_up_out(const at::Tensor& out_RI, const at::Tensor& x_RD) const;
  /// out [R, D] = a down^T
  void down_out(const at::Tensor& out_RD, const at::Tensor& activation_RI) const;

  /// da [R, I] = dy down
  void down_backward_out(const at::Tensor& da_RI, const at::Tensor& dy_RD) const;
  /// Gradients of all three; those of experts without rows are zeros where they must be written.
  void accumulate_gradients(const at::Tensor& dy_RD, const at::Tensor& activation_RI,
                            const at::Tensor& dgate_up_RI, const at::Tensor& x_RD) const;
  /// dx [R, D] = dgate_up [gate; up]
  void gate_up_backward_out(const at::Tensor& dx_RD, const at::Tensor& dgate_up_RI) const;

 private:
  template <typename Body>
  void for_each_busy_expert(const Body& body) const;

  Bindings experts_;
  const ExpertPlan& plan_;
  int64_t width_;
  ExpertGroup gate_, up_, down_;
};

}  // namespace ciuic::core
