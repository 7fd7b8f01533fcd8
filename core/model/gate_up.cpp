// SPDX-License-Identifier: MIT
#include "core/model/gate_up.h"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>

#include "core/model/linear.h"
#include "core/model/product.h"

namespace ciuic::core {
namespace {

// [gate; up] as one matrix when the second follows the first in the same storage, else undefined.
at::Tensor joined(const at::Tensor& first, const at::Tensor& second) {
  const bool follows = first.defined() && second.defined() && first.is_alias_of(second) &&
                       second.storage_offset() == first.storage_offset() + first.numel() &&
                       first.is_contiguous() && second.is_contiguous();
  if (!follows) {
    return {};
  }
  return first.as_strided({first.size(0) + second.size(0), first.size(1)}, {first.size(1), 1});
}

}  // namespace

GateUp::GateUp(const Bound& gate, const Bound& up)
    : gate_(gate), up_(up), width_(gate.value.size(0)), joint_{{}, {}, gate.overwrite} {
  if (gate.hook != nullptr || up.hook != nullptr) {
    return;  // a policy knows them as two modules
  }
  joint_.value = joined(gate.value, up.value);
  if (gate.overwrite == up.overwrite) {
    joint_.grad = joined(gate.grad, up.grad);
  }
}

at::Tensor GateUp::empty_output(int64_t rows) const {
  return at::empty({rows, 2 * width_}, gate_.value.options());
}

void GateUp::forward_out(const at::Tensor& out, const at::Tensor& x) const {
  if (joint_.value.defined()) {
    product_out(out, x, joint_.value.t());
    return;
  }
  linear_out(out.narrow(1, 0, width_), x, gate_);
  linear_out(out.narrow(1, width_, width_), x, up_);
}

void GateUp::backward_out(const at::Tensor& dx, const at::Tensor& dout) const {
  if (joint_.value.defined()) {
    product_out(dx, dout, joint_.value);
    return;
  }
  linear_backward_out(dx, dout.narrow(1, 0, width_), gate_);
  linear_backward_out(dx, dout.narrow(1, width_, width_), up_, /*adds=*/true);
}

void GateUp::accumulate_gradients(const at::Tensor& dout, const at::Tensor& x) const {
  if (joint_.grad.defined()) {
    accumulate_product(joint_, dout, x);
    return;
  }
  accumulate_product(gate_, dout.narrow(1, 0, width_), x);
  accumulate_product(up_, dout.narrow(1, width_, width_), x);
}

void GateUp::accumulate_nothing() const {
  core::accumulate_nothing(gate_);
  core::accumulate_nothing(up_);
}

}  // namespace ciuic::core
