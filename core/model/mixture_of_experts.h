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
#include <span>

#include <ATen/core/Tensor.h>

#include "core/model/expert_plan.h"
#include "core/model/expert_share.h"
#include "core/model/expert_traffic.h"
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
  /// With experts on other ranks: gate_up_RI is of the rows that arrived here, and so are these.
  ExpertTraffic traffic;
  at::Tensor arrived_LD;

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
  explicit MixtureOfExperts(const ModelConfig& config, const ExpertShare& share = {});

  /// `weights`: gate, then gate_proj, up_proj, down_proj of each expert, then of the shared experts
  /// (if any).
  at::Tensor forward(Bindings weights, const at::Tensor& x_ND, const at::Tensor& residual_ND,
                     const RouterPass& pass, MixtureTape* tape) const;
  /// Returns dx (the residual's gradient is dy itself). Experts without tokens get zeros where
  /// views must be written.
  at::Tensor backward(Bindings weights, const at::Tensor& dy_ND, const Objective& objective,
                      MixtureTape& tape) const;

  /// For a rank without tokens in this micro-batch: its experts work for the others. `rows`: of the
  /// hidden states that travel.
  void serve(Bindings weights, const at::TensorOptions& rows, const ExpertExchange& exchange,
             MixtureTape* tape) const;
  /// Gradients of this rank's experts only.
  void serve_backward(Bindings weights, const at::TensorOptions& rows, MixtureTape& tape) const;

  /// Rows that each expert's group is rounded up to. 32 in bf16 where LibTorch multiplies, as a new
  /// row count costs oneDNN a compilation; not for one token, which has one row with each of its
  /// experts.
  static int64_t row_multiple(at::ScalarType dtype, int64_t tokens);

 private:
  struct RowGradients {
    at::Tensor dx_RD, dweights_R;
  };

  // The parameters of a mixture: gate, this rank's experts, shared experts.
  [[nodiscard]] Bindings routed_weights(Bindings weights) const;
  [[nodiscard]] Bindings shared_weights(Bindings weights) const;

  /// residual + shared(x); and its gradient with respect to x.
  at::Tensor beside_experts(Bindings weights, const at::Tensor& x_ND, const at::Tensor& residual_ND,
                            MixtureTape* tape) const;
  at::Tensor beside_experts_backward(Bindings weights, const at::Tensor& dy_ND,
                                     MixtureTape& saved) const;
  static void count_loads(const RouterPass& pass, const ExpertPlan& plan);

  at::Tensor forward_remote(Bindings weights, const at::Tensor& x_ND, const at::Tensor& residual_ND,
                            const RouterPass& pass, MixtureTape* tape) const;
  at::Tensor backward_remote(Bindings weights, const at::Tensor& dy_ND, const Objective& objective,
                             MixtureTape& saved) const;
  /// Takes rows, sorted by expert, to the experts and returns what those make of them; `beside` runs
  /// meanwhile.
  template <typename Beside>
  at::Tensor visit_experts(Bindings weights, const at::Tensor& x_RD,
                           std::span<const int64_t> counts_E, const ExpertExchange& exchange,
                           const Beside& beside, MixtureTape* tape) const;
  template <typename Beside>
  RowGradients visit_experts_backward(Bindings weights, const at::Tensor& dy_RD,
                                      const at::Tensor& weights_R, const Beside& beside,
                                      MixtureTape& saved) const;

  RouterRule rule_;
  int64_t num_experts_here_;
  bool has_shared_;
};

}  // namespace ciuic::core
