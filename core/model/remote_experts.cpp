// SPDX-License-Identifier: MIT
//
// A mixture whose experts are shared out over ranks: rows travel to their experts and results back.
// While they do, this rank works on its shared experts and on gradients of its own experts.
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include "core/bench/step_clock.h"
#include "core/model/expert_projections.h"
#include "core/model/kernels/dtypes.h"
#include "core/model/kernels/expert_rows.h"
#include "core/model/kernels/swiglu.h"
#include "core/model/mixture_of_experts.h"

namespace ciuic::core {
namespace {

constexpr int64_t kManyTokens = 2;  // how many arrive is not known when rows are rounded up

}  // namespace

template <typename Beside>
at::Tensor MixtureOfExperts::visit_experts(Bindings weights, const at::Tensor& x_RD,
                                           std::span<const int64_t> counts_E,
                                           const ExpertExchange& exchange, const Beside& beside,
                                           MixtureTape* tape) const {
  ExpertTraffic traffic(exchange, counts_E, row_multiple(x_RD.scalar_type(), kManyTokens));
  Shipment there(traffic, Shipment::To::Experts, {x_RD});
  beside();
  const at::Tensor x_LD = traffic.sorted(there.wait()[0]);
  const int64_t width = weights[1].value.size(0);
  const at::Tensor gate_up_LI = at::empty({traffic.plan.num_rows(), 2 * width}, x_RD.options());
  const ExpertProjections experts(routed_weights(weights), traffic.plan);
  experts.gate_up_out(gate_up_LI, x_LD);
  const at::Tensor y_LD = at::empty_like(x_LD);
  experts.down_out(y_LD, kernels::swiglu(gate_up_LI));
  Shipment back(traffic, Shipment::To::Tokens, {traffic.unsorted(y_LD)});
  if (tape != nullptr) {
    tape->traffic = std::move(traffic);
    tape->arrived_LD = x_LD;
    tape->gate_up_RI = gate_up_LI;
  }
  return back.wait()[0];
}

at::Tensor MixtureOfExperts::forward_remote(Bindings weights, const at::Tensor& x_ND,
                                            const at::Tensor& residual_ND, const RouterPass& pass,
                                            MixtureTape* tape) const {
  Routing routing = router_forward(rule_, weights[0], x_ND, pass);
  ExpertPlan plan = plan_experts(routing.experts_NK, rule_.num_experts, /*row_multiple=*/1);
  count_loads(pass, plan);
  at::Tensor out_ND;
  const at::Tensor y_RD = visit_experts(
      weights, kernels::gather_rows(x_ND, plan.token_of_row_R), plan.counts, *pass.exchange,
      [&] { out_ND = beside_experts(weights, x_ND, residual_ND, tape); }, tape);
  kernels::combine_rows_(out_ND, y_RD, plan.row_of_choice_NK, routing.weights_NK);
  if (tape != nullptr) {
    tape->x_ND = x_ND;
    tape->routing = std::move(routing);
    tape->plan = std::move(plan);
  }
  return out_ND;
}

void MixtureOfExperts::serve(Bindings weights, const at::TensorOptions& rows,
                             const ExpertExchange& exchange, MixtureTape* tape) const {
  const PartSpan part(Part::Experts);
  const std::vector<int64_t> none(static_cast<size_t>(rule_.num_experts), 0);
  (void)visit_experts(
      weights, at::empty({0, weights[1].value.size(1)}, rows), none, exchange, [] {}, tape);
}

// As backward without exchange; rows' weights and their gradients travel beside the rows. The
// gradients of the experts' weights are taken while those of the rows are on their way back.
template <typename Beside>
MixtureOfExperts::RowGradients MixtureOfExperts::visit_experts_backward(Bindings weights,
                                                                        const at::Tensor& dy_RD,
                                                                        const at::Tensor& weights_R,
                                                                        const Beside& beside,
                                                                        MixtureTape& saved) const {
  const ExpertTraffic& traffic = saved.traffic;
  Shipment there(traffic, Shipment::To::Experts, {dy_RD, weights_R});
  beside();
  const std::vector<at::Tensor> came = there.wait();
  const at::Tensor dy_LD = traffic.sorted(came[0]);
  const at::Tensor weights_L = traffic.sorted_numbers(came[1]);
  const at::Tensor& gate_up_LI = saved.gate_up_RI;
  const at::Tensor da_LI =
      at::empty({traffic.plan.num_rows(), gate_up_LI.size(1) / 2}, dy_RD.options());
  const ExpertProjections experts(routed_weights(weights), traffic.plan);
  experts.down_backward_out(da_LI, dy_LD);
  const at::Tensor dweights_L = kernels::swiglu_backward_(gate_up_LI, da_LI, weights_L);
  const at::Tensor dx_LD = at::empty_like(dy_LD);
  experts.gate_up_backward_out(dx_LD, gate_up_LI);
  Shipment back(traffic, Shipment::To::Tokens,
                {traffic.unsorted(dx_LD), traffic.unsorted_numbers(dweights_L)});
  experts.accumulate_gradients(dy_LD, da_LI, gate_up_LI, saved.arrived_LD);
  std::vector<at::Tensor> home = back.wait();
  return {std::move(home[0]), std::move(home[1])};
}

at::Tensor MixtureOfExperts::backward_remote(Bindings weights, const at::Tensor& dy_ND,
                                             const Objective& objective, MixtureTape& saved) const {
  const ExpertPlan& plan = saved.plan;
  at::Tensor dx_ND;
  const RowGradients rows = visit_experts_backward(
      weights, kernels::gather_rows(dy_ND, plan.token_of_row_R),
      kernels::choices_to_rows(saved.routing.weights_NK, plan.row_of_choice_NK, plan.num_rows()),
      [&] { dx_ND = beside_experts_backward(weights, dy_ND, saved); }, saved);
  kernels::combine_rows_(dx_ND, rows.dx_RD, plan.row_of_choice_NK, at::Tensor());
  router_backward_(rule_, weights[0], saved.x_ND, saved.routing, objective,
                   kernels::rows_to_choices(rows.dweights_R, plan.row_of_choice_NK), dx_ND);
  return dx_ND;
}

void MixtureOfExperts::serve_backward(Bindings weights, const at::TensorOptions& rows,
                                      MixtureTape& tape) const {
  const PartSpan part(Part::Experts);
  MixtureTape saved = std::exchange(tape, {});
  const at::ScalarType numbers = kernels::accumulate_dtype(rows.dtype().toScalarType());
  (void)visit_experts_backward(
      weights, at::empty({0, weights[1].value.size(1)}, rows), at::empty({0}, rows.dtype(numbers)),
      [] {}, saved);
}

}  // namespace ciuic::core
