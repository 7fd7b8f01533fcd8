// SPDX-License-Identifier: MIT
#include "core/model/expert_projections.h"

#include "core/model/gate_up.h"
#include "core/model/linear.h"

namespace ciuic::core {
namespace {

constexpr int64_t kPerExpert = 3;
enum Weight : size_t { kGate, kUp, kDown };

ExpertGroup group_of(Bindings experts, Weight weight, const ExpertPlan& plan) {
  return {&experts[weight], static_cast<int64_t>(plan.counts.size()), kPerExpert, plan};
}

}  // namespace

ExpertProjections::ExpertProjections(Bindings experts, const ExpertPlan& plan)
    : experts_(experts),
      plan_(plan),
      width_(experts[kGate].value.size(0)),
      gate_(group_of(experts, kGate, plan)),
      up_(group_of(experts, kUp, plan)),
      down_(group_of(experts, kDown, plan)) {}

// Calls body(expert's weights, rows(x)) for each expert that has tokens; rows(x): its rows of x.
template <typename Body>
void ExpertProjections::for_each_busy_expert(const Body& body) const {
  for (size_t expert = 0; expert < plan_.counts.size(); ++expert) {
    if (plan_.counts[expert] > 0) {
      const auto index = static_cast<int64_t>(expert);
      body(experts_.subspan(kPerExpert * expert, kPerExpert), [&](const at::Tensor& x) {
        return x.narrow(0, plan_.offsets[expert], plan_.group_rows(index));
      });
    }
  }
}

void ExpertProjections::gate_up_out(const at::Tensor& out_RI, const at::Tensor& x_RD) const {
  if (gate_.takes(ProductPass::Forward) && up_.takes(ProductPass::Forward)) {
    gate_.forward_out(out_RI.narrow(1, 0, width_), x_RD);
    up_.forward_out(out_RI.narrow(1, width_, width_), x_RD);
    return;
  }
  for_each_busy_expert([&](Bindings expert, const auto& rows) {
    GateUp(expert[kGate], expert[kUp]).forward_out(rows(out_RI), rows(x_RD));
  });
}

void ExpertProjections::down_out(const at::Tensor& out_RD, const at::Tensor& activation_RI) const {
  if (down_.takes(ProductPass::Forward)) {
    down_.forward_out(out_RD, activation_RI);
    return;
  }
  for_each_busy_expert([&](Bindings expert, const auto& rows) {
    linear_out(rows(out_RD), rows(activation_RI), expert[kDown]);
  });
}

void ExpertProjections::down_backward_out(const at::Tensor& da_RI, const at::Tensor& dy_RD) const {
  if (down_.takes(ProductPass::GradInput)) {
    down_.backward_out(da_RI, dy_RD);
    return;
  }
  for_each_busy_expert([&](Bindings expert, const auto& rows) {
    linear_backward_out(rows(da_RI), rows(dy_RD), expert[kDown]);
  });
}

void ExpertProjections::accumulate_gradients(const at::Tensor& dy_RD,
                                             const at::Tensor& activation_RI,
                                             const at::Tensor& dgate_up_RI,
                                             const at::Tensor& x_RD) const {
  if (gate_.takes(ProductPass::GradWeight) && up_.takes(ProductPass::GradWeight) &&
      down_.takes(ProductPass::GradWeight)) {
    down_.accumulate_gradients(dy_RD, activation_RI);
    gate_.accumulate_gradients(dgate_up_RI.narrow(1, 0, width_), x_RD);
    up_.accumulate_gradients(dgate_up_RI.narrow(1, width_, width_), x_RD);
    return;
  }
  for_each_busy_expert([&](Bindings expert, const auto& rows) {
    accumulate_product(expert[kDown], rows(dy_RD), rows(activation_RI));
    GateUp(expert[kGate], expert[kUp]).accumulate_gradients(rows(dgate_up_RI), rows(x_RD));
  });
  for (size_t expert = 0; expert < plan_.counts.size(); ++expert) {
    if (plan_.counts[expert] == 0) {
      for (const Bound& weight : experts_.subspan(kPerExpert * expert, kPerExpert)) {
        accumulate_nothing(weight);
      }
    }
  }
}

void ExpertProjections::gate_up_backward_out(const at::Tensor& dx_RD,
                                             const at::Tensor& dgate_up_RI) const {
  if (gate_.takes(ProductPass::GradInput) && up_.takes(ProductPass::GradInput)) {
    gate_.backward_out(dx_RD, dgate_up_RI.narrow(1, 0, width_));
    up_.backward_out(dx_RD, dgate_up_RI.narrow(1, width_, width_), /*adds=*/true);
    return;
  }
  for_each_busy_expert([&](Bindings expert, const auto& rows) {
    GateUp(expert[kGate], expert[kUp]).backward_out(rows(dx_RD), rows(dgate_up_RI));
  });
}

}  // namespace ciuic::core
