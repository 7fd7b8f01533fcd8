// SPDX-License-Identifier: MIT
#pragma once

// The mixture of experts: y = residual + shared(x) + sum_k w_k expert_k(x).
//
// Tokens are sorted by expert, gathered once, and meet each expert in one product per projection;
// no loop runs over tokens. What comes back is summed per token in the order of its choices, so the
// bits do not depend on timing. Source: DeepSeekMoE, arXiv:2401.06066, section 3; DeepSeek-V3,
// arXiv:2412.19437, equation 12. Shapes: N tokens, D hidden, I expert width, E experts, K per
// token, R gathered rows.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/expert_plan.h"
#include "core/model/gradient.h"
#include "core/model/model_config.h"
#include "core/model/router.h"
#include "core/model/swiglu_mlp.h"

namespace ciuic::core {

struct MixtureTape {
  at::Tensor x_ND;
  Routing routing;
  ExpertPlan plan;
  at::Tensor gate_up_RI;  // [R, 2I]
  SwigluTape shared;

  /// Keeps what `restore` cannot give back.
  void shrink() {
    x_ND.reset();
    shared.x_ND.reset();
  }
  /// `x`: what forward was given.
  void restore(const at::Tensor& x) { x_ND = shared.x_ND = x; }
};

class MixtureOfExperts final {
 public:
  explicit MixtureOfExperts(const ModelConfig& config);

  /// `weights`: gate, then gate_proj, up_proj, down_proj of each expert, then of the shared experts
  /// (if any).
  at::Tensor forward(Bindings weights, const at::Tensor& x_ND, const at::Tensor& residual_ND,
                     const RouterPass& pass, MixtureTape* tape) const;
  /// Returns dx (the residual's gradient is dy itself). Experts without tokens get zeros where
  /// views must be written.
  at::Tensor backward(Bindings weights, const at::Tensor& dy_ND, const Objective& objective,
                      MixtureTape& tape) const;

  /// Rows that each expert's group is rounded up to. 32 in bf16, where a new row count costs oneDNN
  /// a compilation; not for one token, which has one row with each of its experts.
  static int64_t row_multiple(at::ScalarType dtype, int64_t tokens);

 private:
  RouterRule rule_;
  bool has_shared_;
};

}  // namespace ciuic::core
