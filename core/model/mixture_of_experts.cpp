// SPDX-License-Identifier: MIT
#include "core/model/mixture_of_experts.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include "core/model/gate_up.h"
#include "core/model/kernels/expert_rows.h"
#include "core/model/kernels/swiglu.h"
#include "core/model/product.h"

namespace ciuic::core {
namespace {

// The parameters of a mixture: gate, experts, shared experts.
Bindings expert_weights(Bindings weights, int64_t expert) {
  return weights.subspan(1 + 3 * expert, 3);
}
Bindings shared_weights(Bindings weights, int64_t num_experts) {
  return weights.subspan(1 + 3 * num_experts, 3);
}

// Calls body(expert's weights, first row, number of rows) for each expert that has tokens.
template <typename Body>
void for_each_busy_expert(Bindings weights, const ExpertPlan& plan, const Body& body) {
  for (int64_t expert = 0; expert < static_cast<int64_t>(plan.counts.size()); ++expert) {
    if (plan.counts[expert] > 0) {
      body(expert_weights(weights, expert), plan.offsets[expert], plan.group_rows(expert));
    }
  }
}

void count_loads(const at::Tensor& loads_E, const ExpertPlan& plan) {
  auto* loads = loads_E.mutable_data_ptr<int64_t>();
  for (size_t expert = 0; expert < plan.counts.size(); ++expert) {
    loads[expert] += plan.counts[expert];
  }
}

}  // namespace

MixtureOfExperts::MixtureOfExperts(const ModelConfig& config)
    : rule_(config), has_shared_(config.n_shared_experts > 0) {}

int64_t MixtureOfExperts::row_multiple(at::ScalarType dtype, int64_t tokens) {
  return dtype == at::kBFloat16 && tokens > 1 ? 32 : 1;
}

at::Tensor MixtureOfExperts::forward(Bindings weights, const at::Tensor& x_ND,
                                     const at::Tensor& residual_ND, const RouterPass& pass,
                                     MixtureTape* tape) const {
  Routing routing = router_forward(rule_, weights[0], x_ND, pass);
  ExpertPlan plan = plan_experts(routing.experts_NK, rule_.num_experts,
                                 row_multiple(x_ND.scalar_type(), x_ND.size(0)));
  if (pass.loads_E.defined()) {
    count_loads(pass.loads_E, plan);
  }

  const at::Tensor x_RD = kernels::gather_rows(x_ND, plan.token_of_row_R);
  const int64_t width = weights[1].value.size(0);
  const at::Tensor gate_up_RI = at::empty({plan.num_rows(), 2 * width}, x_ND.options());
  for_each_busy_expert(weights, plan, [&](Bindings expert, int64_t first, int64_t rows) {
    GateUp(expert[0], expert[1])
        .forward_out(gate_up_RI.narrow(0, first, rows), x_RD.narrow(0, first, rows));
  });
  const at::Tensor activation_RI = kernels::swiglu(gate_up_RI);
  const at::Tensor& y_RD = x_RD;  // the gathered inputs are used up: their memory takes the outputs
  for_each_busy_expert(weights, plan, [&](Bindings expert, int64_t first, int64_t rows) {
    product_out(y_RD.narrow(0, first, rows), activation_RI.narrow(0, first, rows),
                expert[2].value.t());
  });

  at::Tensor out_ND =
      has_shared_ ? swiglu_mlp_forward(shared_weights(weights, rule_.num_experts), x_ND,
                                       residual_ND, tape != nullptr ? &tape->shared : nullptr)
                  : residual_ND.clone();
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
  MixtureTape saved = std::exchange(tape, {});
  const ExpertPlan& plan = saved.plan;
  const at::Tensor& gate_up_RI = saved.gate_up_RI;

  const at::Tensor dy_RD = kernels::gather_rows(dy_ND, plan.token_of_row_R);
  const at::Tensor da_RI = at::empty({plan.num_rows(), gate_up_RI.size(1) / 2}, dy_ND.options());
  for_each_busy_expert(weights, plan, [&](Bindings expert, int64_t first, int64_t rows) {
    product_out(da_RI.narrow(0, first, rows), dy_RD.narrow(0, first, rows), expert[2].value);
  });
  const at::Tensor weights_R =
      kernels::choices_to_rows(saved.routing.weights_NK, plan.row_of_choice_NK, plan.num_rows());
  const at::Tensor dweights_R = kernels::swiglu_backward_(gate_up_RI, da_RI, weights_R);

  const at::Tensor x_RD = kernels::gather_rows(saved.x_ND, plan.token_of_row_R);
  for_each_busy_expert(weights, plan, [&](Bindings expert, int64_t first, int64_t rows) {
    const at::Tensor dgate_up = gate_up_RI.narrow(0, first, rows);
    const at::Tensor x = x_RD.narrow(0, first, rows);
    const GateUp gate_up(expert[0], expert[1]);
    accumulate_product(expert[2], dy_RD.narrow(0, first, rows), da_RI.narrow(0, first, rows));
    gate_up.accumulate_gradients(dgate_up, x);
    gate_up.backward_out(x,
                         dgate_up);  // the gathered input is used up: its memory takes its gradient
  });
  for (int64_t expert = 0; expert < rule_.num_experts; ++expert) {
    if (plan.counts[expert] == 0) {
      for (const Bound& weight : expert_weights(weights, expert)) {
        accumulate_nothing(weight);
      }
    }
  }

  at::Tensor dx_ND = has_shared_ ? swiglu_mlp_backward(shared_weights(weights, rule_.num_experts),
                                                       dy_ND, saved.shared)
                                 : at::zeros_like(dy_ND);
  kernels::combine_rows_(dx_ND, x_RD, plan.row_of_choice_NK, at::Tensor());
  const at::Tensor dweights_NK = kernels::rows_to_choices(dweights_R, plan.row_of_choice_NK);
  router_backward_(rule_, weights[0], saved.x_ND, saved.routing, objective, dweights_NK, dx_ND);
  return dx_ND;
}

}  // namespace ciuic::core
