// SPDX-License-Identifier: MIT
#include "core/model/router.h"

#include "core/model/kernels/dtypes.h"
#include "core/model/kernels/expert_choice.h"
#include "core/model/product.h"

namespace ciuic::core {

RouterRule::RouterRule(const ModelConfig& config)
    : num_experts(config.n_routed_experts),
      num_chosen(config.num_experts_per_tok),
      num_groups(config.n_group),
      num_kept_groups(config.topk_group),
      normalizes(config.norm_topk_prob),
      scaling(config.routed_scaling_factor) {}

Routing choose_experts(const RouterRule& rule, const at::Tensor& logits_NE,
                       const at::Tensor& bias_E) {
  return logits_NE.is_cpu() ? kernels::cpu::choose_experts(rule, logits_NE, bias_E)
                            : kernels::reference::choose_experts(rule, logits_NE, bias_E);
}

at::Tensor choose_experts_backward(const RouterRule& rule, const Routing& routing,
                                   const at::Tensor& dweights_NK) {
  return dweights_NK.is_cpu()
             ? kernels::cpu::choose_experts_backward(rule, routing, dweights_NK)
             : kernels::reference::choose_experts_backward(rule, routing, dweights_NK);
}

Routing router_forward(const RouterRule& rule, const Bound& gate, const at::Tensor& x_ND,
                       const at::Tensor& bias_E) {
  const at::ScalarType dtype = kernels::accumulate_dtype(x_ND.scalar_type());
  return choose_experts(rule, product(x_ND.to(dtype), gate.value.to(dtype).t()), bias_E);
}

void router_backward_(const RouterRule& rule, const Bound& gate, const at::Tensor& x_ND,
                      const Routing& routing, const at::Tensor& dweights_NK,
                      const at::Tensor& dx_ND) {
  const at::ScalarType dtype = kernels::accumulate_dtype(x_ND.scalar_type());
  const at::Tensor dlogits_NE = choose_experts_backward(rule, routing, dweights_NK);
  accumulate_product(gate, dlogits_NE, x_ND.to(dtype));
  if (dx_ND.scalar_type() == dtype) {
    product_out(dx_ND, dlogits_NE, gate.value.to(dtype), /*adds=*/true);
  } else {
    dx_ND.add_(product(dlogits_NE, gate.value.to(dtype)));
  }
}

}  // namespace ciuic::core
