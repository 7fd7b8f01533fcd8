// SPDX-License-Identifier: MIT
#include "core/model/mixture_of_experts.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include "core/bench/step_clock.h"
#include "core/model/expert_projections.h"
#include "core/model/kernels/cpu_bf16_product.h"
#include "core/model/kernels/expert_rows.h"
#include "core/model/kernels/swiglu.h"

namespace ciuic::core {

MixtureOfExperts::MixtureOfExperts(const ModelConfig& config, const ExpertShare& share)
    : rule_(config),
      num_experts_here_(share.count(rule_.num_experts)),
      has_shared_(config.n_shared_experts > 0) {}

Bindings MixtureOfExperts::routed_weights(Bindings weights) const {
  return weights.subspan(1, static_cast<size_t>(3 * num_experts_here_));
}
Bindings MixtureOfExperts::shared_weights(Bindings weights) const {
  return weights.subspan(static_cast<size_t>(1 + 3 * num_experts_here_), 3);
}

void MixtureOfExperts::count_loads(const RouterPass& pass, const ExpertPlan& plan) {
  if (!pass.loads_E.defined()) {
    return;
  }
  auto* loads = pass.loads_E.mutable_data_ptr<int64_t>();
  for (size_t expert = 0; expert < plan.counts.size(); ++expert) {
    loads[expert] += plan.counts[expert];
  }
}

at::Tensor MixtureOfExperts::beside_experts(Bindings weights, const at::Tensor& x_ND,
                                            const at::Tensor& residual_ND,
                                            MixtureTape* tape) const {
  return has_shared_ ? swiglu_mlp_forward(shared_weights(weights), x_ND, residual_ND,
                                          tape != nullptr ? &tape->shared : nullptr)
                     : residual_ND.clone();
}

at::Tensor MixtureOfExperts::beside_experts_backward(Bindings weights, const at::Tensor& dy_ND,
                                                     MixtureTape& saved) const {
  return has_shared_ ? swiglu_mlp_backward(shared_weights(weights), dy_ND, saved.shared)
                     : at::zeros_like(dy_ND);
}

int64_t MixtureOfExperts::row_multiple(at::ScalarType dtype, int64_t tokens) {
  return dtype == at::kBFloat16 && tokens > 1 && !kernels::has_cpu_bf16_products() ? 32 : 1;
}

at::Tensor MixtureOfExperts::forward(Bindings weights, const at::Tensor& x_ND,
                                     const at::Tensor& residual_ND, const RouterPass& pass,
                                     MixtureTape* tape) const {
  const PartSpan part(Part::Experts);
  if (pass.exchange != nullptr) {
    return forward_remote(weights, x_ND, residual_ND, pass, tape);
  }
  Routing routing = router_forward(rule_, weights[0], x_ND, pass);
  ExpertPlan plan = plan_experts(routing.experts_NK, rule_.num_experts,
                                 row_multiple(x_ND.scalar_type(), x_ND.size(0)));
  count_loads(pass, plan);

  const at::Tensor x_RD = kernels::gather_rows(x_ND, plan.token_of_row_R);
  const int64_t width = weights[1].value.size(0);
  const at::Tensor gate_up_RI = at::empty({plan.num_rows(), 2 * width}, x_ND.options());
  const ExpertProjections experts(routed_weights(weights), plan);
  experts.gate_up_out(gate_up_RI, x_RD);
  const at::Tensor activation_RI = kernels::swiglu(gate_up_RI);
  const at::Tensor& y_RD = x_RD;  // the gathered inputs are used up: their memory takes the outputs
  experts.down_out(y_RD, activation_RI);

  at::Tensor out_ND = beside_experts(weights, x_ND, residual_ND, tape);
  kernels::combine_rows_(out_ND, y_RD, plan.row_of_choice_NK, routing.weights_NK);
  if (tape != nullptr) {
    tape->x_ND = x_ND;
    tape->routing = std::move(routing);
    tape->plan = std::move(plan);
    tape->gate_up_RI = gate_up_RI;
  }
  return out_ND;
}

// With w the weight of a row: y_n += w down(a). da = down^T dy is taken once without w; then d w =
// da . a, and w goes into a for the gradient of `down` and into da for the rest. So no output of an
// expert is kept from the forward.
at::Tensor MixtureOfExperts::backward(Bindings weights, const at::Tensor& dy_ND,
                                      const Objective& objective, MixtureTape& tape) const {
  const PartSpan part(Part::Experts);
  MixtureTape saved = std::exchange(tape, {});
  if (saved.traffic.exchange != nullptr) {
    return backward_remote(weights, dy_ND, objective, saved);
  }
  const ExpertPlan& plan = saved.plan;
  const at::Tensor& gate_up_RI = saved.gate_up_RI;

  const at::Tensor dy_RD = kernels::gather_rows(dy_ND, plan.token_of_row_R);
  const at::Tensor da_RI = at::empty({plan.num_rows(), gate_up_RI.size(1) / 2}, dy_ND.options());
  const ExpertProjections experts(routed_weights(weights), plan);
  experts.down_backward_out(da_RI, dy_RD);
  const at::Tensor weights_R =
      kernels::choices_to_rows(saved.routing.weights_NK, plan.row_of_choice_NK, plan.num_rows());
  const at::Tensor dweights_R = kernels::swiglu_backward_(gate_up_RI, da_RI, weights_R);

  const at::Tensor x_RD = kernels::gather_rows(saved.x_ND, plan.token_of_row_R);
  experts.accumulate_gradients(dy_RD, da_RI, gate_up_RI, x_RD);
  // The gathered inputs are used up: their memory takes their gradients.
  experts.gate_up_backward_out(x_RD, gate_up_RI);

  at::Tensor dx_ND = beside_experts_backward(weights, dy_ND, saved);
  kernels::combine_rows_(dx_ND, x_RD, plan.row_of_choice_NK, at::Tensor());
  const at::Tensor dweights_NK = kernels::rows_to_choices(dweights_R, plan.row_of_choice_NK);
  router_backward_(rule_, weights[0], saved.x_ND, saved.routing, objective, dweights_NK, dx_ND);
  return dx_ND;
}

}  // namespace ciuic::core
