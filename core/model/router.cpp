// SPDX-License-Identifier: MIT
#include "core/model/router.h"

#include <ATen/ops/logsumexp.h>
#include <ATen/ops/softmax.h>

#include "core/bench/step_clock.h"
#include "core/model/balance.h"
#include "core/model/kernels/dtypes.h"
#include "core/model/kernels/expert_choice.h"
#include "core/model/product.h"

namespace ciuic::core {
namespace {

// sum over tokens of logsumexp(logits)^2.
double z_sum(const at::Tensor& logits_NE) {
  return logits_NE.logsumexp({1}).square().sum(at::kDouble).item<double>();
}
at::Tensor z_backward(const at::Tensor& logits_NE) {
  return logits_NE.softmax(1).mul(logits_NE.logsumexp({1}, /*keepdim=*/true)).mul(2);
}

}  // namespace

RouterRule::RouterRule(const ModelConfig& config)
    : num_experts(config.n_routed_experts),
      num_chosen(config.num_experts_per_tok),
      num_groups(config.n_group),
      num_kept_groups(config.topk_group),
      is_softmax(config.scoring_func == "softmax"),
      limits_groups(config.topk_method != "greedy" && config.n_group > 1),
      judges_groups_by_two(config.topk_method == "noaux_tc"),
      counts_best_scores(config.topk_method == "noaux_tc"),
      normalizes(config.norm_topk_prob),
      scaling(config.routed_scaling_factor) {}

Routing choose_experts(const RouterRule& rule, const at::Tensor& logits_NE,
                       const at::Tensor& bias_E, bool keeps_scores) {
  keeps_scores = keeps_scores || rule.is_softmax;
  return logits_NE.is_cpu()
             ? kernels::cpu::choose_experts(rule, logits_NE, bias_E, keeps_scores)
             : kernels::reference::choose_experts(rule, logits_NE, bias_E, keeps_scores);
}

at::Tensor choose_experts_backward(const RouterRule& rule, const Routing& routing,
                                   const at::Tensor& dweights_NK) {
  return dweights_NK.is_cpu()
             ? kernels::cpu::choose_experts_backward(rule, routing, dweights_NK)
             : kernels::reference::choose_experts_backward(rule, routing, dweights_NK);
}

Routing router_forward(const RouterRule& rule, const Bound& gate, const at::Tensor& x_ND,
                       const RouterPass& pass) {
  const PartSpan part(Part::Router);
  const at::ScalarType dtype = kernels::accumulate_dtype(x_ND.scalar_type());
  const at::Tensor logits_NE = product(x_ND.to(dtype), gate.value.to(dtype).t());
  if (pass.noise.deviation != 0) {
    logits_NE.add_(router_noise(pass.noise, logits_NE));
  }
  const Objective& objective = pass.objective;
  const bool has_balance = pass.terms != nullptr && objective.has_balance();
  Routing routing = choose_experts(rule, logits_NE, pass.bias_E, has_balance);
  if (has_balance) {
    Balance balance =
        balance_of(rule, objective, routing.scores_NE, routing.experts_NK, pass.num_sequences);
    pass.terms->balance += balance.sum;
    routing.balance_BE = std::move(balance.coefficients_BE);
  }
  if (pass.terms != nullptr && objective.router_z != 0) {
    pass.terms->z += objective.router_z * z_sum(logits_NE);
    routing.logits_NE = logits_NE;
  }
  return routing;
}

void router_backward_(const RouterRule& rule, const Bound& gate, const at::Tensor& x_ND,
                      const Routing& routing, const Objective& objective,
                      const at::Tensor& dweights_NK, const at::Tensor& dx_ND) {
  const PartSpan part(Part::Router);
  const at::ScalarType dtype = kernels::accumulate_dtype(x_ND.scalar_type());
  const at::Tensor dlogits_NE = choose_experts_backward(rule, routing, dweights_NK);
  if (routing.balance_BE.defined()) {
    dlogits_NE.add_(balance_backward(rule, routing.scores_NE, routing.balance_BE), objective.seed);
  }
  if (routing.logits_NE.defined()) {
    dlogits_NE.add_(z_backward(routing.logits_NE), objective.seed * objective.router_z);
  }
  accumulate_product(gate, dlogits_NE, x_ND.to(dtype));
  if (dx_ND.scalar_type() == dtype) {
    product_out(dx_ND, dlogits_NE, gate.value.to(dtype), /*adds=*/true);
  } else {
    dx_ND.add_(product(dlogits_NE, gate.value.to(dtype)));
  }
}

}  // namespace ciuic::core
