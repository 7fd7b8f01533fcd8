// SPDX-License-Identifier: MIT
#include "core/train/binder.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "core/bench/step_clock.h"
#include "core/train/tensor_bridge.h"

namespace ciuic::core {

BoundUnit::~BoundUnit() noexcept(false) {
  const PartSpan part(Part::Sharding);
  if (std::uncaught_exceptions() == exceptions_) {
    sharding_->drop(use_);
  }
}

void BoundUnit::grad_ready() const {
  const PartSpan part(Part::Sharding);
  sharding_->grad_ready(use_);
}

Binder::Binder(const ShardingPlugin& sharding, const Model& model)
    : sharding_(sharding), cache_(model.parameters().size()) {
  int64_t first = 0;
  for (int64_t unit = 0; unit < model.num_units(); ++unit) {
    first_.push_back(first);
    const auto count = model.unit_parameters(unit).size();
    bound_.emplace_back(count);
    for (size_t i = 0; i < count; ++i) {
      const ModuleHook* hook = model.hook(static_cast<size_t>(first) + i);
      bound_.back()[i].hook = hook;
      products_ = hook != nullptr ? hook->products : products_;
    }
    first += static_cast<int64_t>(count);
  }
}

void Binder::begin_step(ciuic_step step, std::vector<ciuic_use> walk) {
  const PartSpan part(Part::Sharding);
  walk_ = std::move(walk);
  next_ = 0;
  step.uses = to_array(walk_);
  sharding_.begin_step(step);
}

BoundUnit Binder::bind(int64_t unit, uint32_t pass, uint32_t micro_batch, uint32_t flags) {
  const PartSpan part(Part::Sharding);
  if (products_ != nullptr) {
    products_->at_micro_batch(micro_batch);
  }
  if (next_ == walk_.size() || walk_[next_].unit != unit || walk_[next_].pass != pass ||
      walk_[next_].micro_batch != micro_batch || walk_[next_].flags != flags) {
    throw std::logic_error("bind " + std::to_string(next_) + " of the step, unit " +
                           std::to_string(unit) + ", is not the one announced to sharding");
  }
  const ciuic_use use = walk_[next_++];
  const ArrayView<ciuic_binding> bindings = sharding_.bind(use);
  std::vector<Bound>& out = bound_[static_cast<size_t>(unit)];
  if (bindings.size() != out.size()) {
    throw Failure(ExitCode::Plugin, "sharding bound " + std::to_string(bindings.size()) +
                                        " parameters of unit " + std::to_string(unit) +
                                        ", expected " + std::to_string(out.size()));
  }
  size_t i = 0;
  for (const ciuic_binding& b : bindings) {
    Cached& cached = cache_[static_cast<size_t>(first_[static_cast<size_t>(unit)]) + i];
    if (cached.value != tensor_data(*b.value)) {
      cached.value = tensor_data(*b.value);
      cached.value_tensor = to_torch(*b.value);
    }
    if (b.grad != nullptr && cached.grad != tensor_data(*b.grad)) {
      cached.grad = tensor_data(*b.grad);
      cached.grad_tensor = to_torch(*b.grad);
    }
    out[i].value = cached.value_tensor;
    out[i].grad = b.grad == nullptr ? at::Tensor() : cached.grad_tensor;
    out[i].overwrite = (b.flags & CIUIC_BINDING_OVERWRITE) != 0;
    ++i;
  }
  return BoundUnit(sharding_, use, out);
}

}  // namespace ciuic::core
