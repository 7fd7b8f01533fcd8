// SPDX-License-Identifier: MIT
#include "core/model/swiglu_mlp.h"

#include <utility>

#include <ATen/ops/empty_like.h>

#include "core/bench/step_clock.h"
#include "core/model/gate_up.h"
#include "core/model/kernels/swiglu.h"
#include "core/model/linear.h"

namespace ciuic::core {

at::Tensor swiglu_mlp_forward(Bindings weights, const at::Tensor& x_ND,
                              const at::Tensor& residual_ND, SwigluTape* tape) {
  const PartSpan part(Part::DenseFeedForward);
  const GateUp gate_up(weights[0], weights[1]);
  const at::Tensor hidden_NI = gate_up.empty_output(x_ND.size(0));
  gate_up.forward_out(hidden_NI, x_ND);
  const at::Tensor activation_NI = kernels::swiglu(hidden_NI);
  if (tape != nullptr) {
    *tape = {x_ND, hidden_NI};
  }
  return add_linear(residual_ND, activation_NI, weights[2]);
}

at::Tensor swiglu_mlp_backward(Bindings weights, const at::Tensor& dy_ND, SwigluTape& tape) {
  const PartSpan part(Part::DenseFeedForward);
  const auto [x_ND, gate_up_NI] = std::exchange(tape, {});
  const Bound& down = weights[2];
  const at::Tensor activation_NI = linear_backward(dy_ND, down);  // d loss / d activation, until
  kernels::swiglu_backward_(gate_up_NI, activation_NI,
                            at::Tensor());  // both turn into what is needed next
  accumulate_product(down, dy_ND, activation_NI);
  const GateUp gate_up(weights[0], weights[1]);
  gate_up.accumulate_gradients(gate_up_NI, x_ND);
  at::Tensor dx_ND = at::empty_like(x_ND);
  gate_up.backward_out(dx_ND, gate_up_NI);
  return dx_ND;
}

}  // namespace ciuic::core
