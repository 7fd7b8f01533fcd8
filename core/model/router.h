// SPDX-License-Identifier: MIT
#pragma once

// Chooses each token's experts, and weighs them.
//
//   s = sigmoid(W x);  choice by s + b within the best groups;  w = s[chosen] / sum *
//   routed_scaling_factor
//
// The bias b steers the choice and never reaches a weight or a gradient (vLLM#12002). Experts of a
// group that was not kept are out, whatever their sign (DeepSeek-V3#741). Equal scores: the lower
// expert wins. All in f32 (f64 for f64). Source: DeepSeek-V3, arXiv:2412.19437, section 2.1.2,
// equations 12-16. Shapes: N tokens, D hidden, E experts, K experts per token.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/gradient.h"
#include "core/model/model_config.h"

namespace ciuic::core {

struct Routing {
  at::Tensor experts_NK;  // int32, best first
  at::Tensor scores_NK;   // s of the chosen
  at::Tensor weights_NK;
};

struct RouterRule {
  int64_t num_experts, num_chosen, num_groups, num_kept_groups;
  bool normalizes;
  double scaling;

  explicit RouterRule(const ModelConfig& config);
};

/// logits: f32 or f64 [N, E]; bias: f32 [E].
Routing choose_experts(const RouterRule& rule, const at::Tensor& logits_NE,
                       const at::Tensor& bias_E);

/// d loss / d logits, zero but for the chosen experts.
at::Tensor choose_experts_backward(const RouterRule& rule, const Routing& routing,
                                   const at::Tensor& dweights_NK);

Routing router_forward(const RouterRule& rule, const Bound& gate, const at::Tensor& x_ND,
                       const at::Tensor& bias_E);

/// Accumulates the gate's gradient and adds the router's part to `dx_ND` in place.
void router_backward_(const RouterRule& rule, const Bound& gate, const at::Tensor& x_ND,
                      const Routing& routing, const at::Tensor& dweights_NK,
                      const at::Tensor& dx_ND);

}  // namespace ciuic::core
