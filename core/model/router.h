// SPDX-License-Identifier: MIT
#pragma once

// Chooses each token's experts, and weighs them.
//
//   V3: s = sigmoid(W x);  choice by s + b within the best groups;  w = s[chosen] / sum *
//       routed_scaling_factor; a group is as good as its two best experts together
//   V2: s = softmax(W x);  choice by s, of all experts or within the best groups;  w = s[chosen] *
//       routed_scaling_factor; a group is as good as its best expert
//
// The bias b steers the choice and never reaches a weight or a gradient (vLLM#12002). Experts of a
// group that was not kept are out, whatever their sign (DeepSeek-V3#741). Equal scores: the lower
// expert wins. All in f32 (f64 for f64). Sources: DeepSeek-V3, arXiv:2412.19437, section 2.1.2,
// equations 12-16; DeepSeek-V2, arXiv:2405.04434, section 2.2. Shapes: N tokens, D hidden, E experts, K experts per token.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/expert_exchange.h"
#include "core/model/gradient.h"
#include "core/model/model_config.h"
#include "core/model/objective.h"
#include "core/model/router_noise.h"

namespace ciuic::core {

struct Routing {
  at::Tensor experts_NK;  // int32, best first
  at::Tensor scores_NK;   // s of the chosen
  at::Tensor weights_NK;
  /// Only where backward needs them: all scores and logits, and balance.h's coefficients.
  at::Tensor scores_NE, logits_NE, balance_BE;
};

struct RouterRule {
  int64_t num_experts, num_chosen, num_groups, num_kept_groups;
  bool is_softmax;
  bool limits_groups;
  bool judges_groups_by_two;  // their two best experts, else the best
  bool counts_best_scores;    // balance counts the best unbiased scores, else the chosen experts
  bool normalizes;
  double scaling;

  explicit RouterRule(const ModelConfig& config);
};

/// logits: f32 or f64 [N, E]; bias: f32 [E]. `keeps_scores`: scores_NE are wanted (softmax always
/// has them).
Routing choose_experts(const RouterRule& rule, const at::Tensor& logits_NE,
                       const at::Tensor& bias_E, bool keeps_scores);

/// d loss / d logits by way of the weights.
at::Tensor choose_experts_backward(const RouterRule& rule, const Routing& routing,
                                   const at::Tensor& dweights_NK);

/// What a router needs besides tokens and weights.
struct RouterPass {
  at::Tensor bias_E;   // f32
  at::Tensor loads_E;  // int64, on the CPU: gets this pass's tokens added; undefined: not counted
  int64_t num_sequences = 1;
  Objective objective;
  RouterTerms* terms = nullptr;  // gets the terms added; null: there will be no backward
  RouterNoise noise;
  const ExpertExchange* exchange = nullptr;  // to experts of other ranks; null: all are here
};

Routing router_forward(const RouterRule& rule, const Bound& gate, const at::Tensor& x_ND,
                       const RouterPass& pass);

/// Accumulates the gate's gradient and adds the router's part to `dx_ND` in place.
void router_backward_(const RouterRule& rule, const Bound& gate, const at::Tensor& x_ND,
                      const Routing& routing, const Objective& objective,
                      const at::Tensor& dweights_NK, const at::Tensor& dx_ND);

}  // namespace ciuic::core
