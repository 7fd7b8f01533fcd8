// SPDX-License-Identifier: MIT
#include "core/model/expert_group.h"

#include <ATen/ops/from_blob.h>

namespace ciuic::core {
namespace {

// The same tensor of all experts as one with a leading dimension, or undefined where they are not
// at equal distances. `of`: value or grad of a binding.
template <typename Of>
at::Tensor stacked(const Bound* first, int64_t count, int64_t step, const Of& of) {
  const at::Tensor& one = of(first[0]);
  if (!one.defined()) {
    return {};
  }
  const auto address = [&](int64_t expert) {
    const at::Tensor& t = of(first[expert * step]);
    const bool fits = t.defined() && t.is_contiguous() && t.sizes() == one.sizes() &&
                      t.scalar_type() == one.scalar_type();
    return fits ? static_cast<char*>(t.data_ptr()) : nullptr;
  };
  char* base = address(0);
  const auto bytes = static_cast<int64_t>(one.element_size());
  const int64_t distance = count > 1 && address(1) != nullptr ? address(1) - base : one.nbytes();
  for (int64_t expert = 0; expert < count; ++expert) {
    if (address(expert) != base + expert * distance || distance % bytes != 0 ||
        distance < static_cast<int64_t>(one.nbytes())) {
      return {};
    }
  }
  return at::from_blob(base, {count, one.size(0), one.size(1)}, {distance / bytes, one.size(1), 1},
                       one.options());
}

}  // namespace

ExpertGroup::ExpertGroup(const Bound* first, int64_t num_experts, int64_t step,
                         const ExpertPlan& plan)
    : first_(first), num_experts_(num_experts), step_(step) {
  if (first->hook == nullptr || first->hook->group_passes == 0) {
    return;
  }
  value_EOI_ = stacked(
      first, num_experts, step, [](const Bound& b) -> auto& { return b.value; });
  grad_EOI_ = stacked(
      first, num_experts, step, [](const Bound& b) -> auto& { return b.grad; });
  group_ends_E_ = at::from_blob(const_cast<int64_t*>(plan.offsets.data() + 1), {num_experts},
                                at::TensorOptions().dtype(at::kLong));
}

bool ExpertGroup::has_equal_overwrite() const {
  for (int64_t expert = 1; expert < num_experts_; ++expert) {
    if (first_[expert * step_].overwrite != first_->overwrite) {
      return false;
    }
  }
  return true;
}

bool ExpertGroup::takes(ProductPass pass) const {
  if (first_->hook == nullptr || !first_->hook->takes_groups(pass)) {
    return false;
  }
  return pass == ProductPass::GradWeight ? grad_EOI_.defined() && has_equal_overwrite()
                                         : value_EOI_.defined();
}

void ExpertGroup::compute(ProductPass pass, const at::Tensor& out, const at::Tensor& a,
                          const at::Tensor& b, bool adds) const {
  const ModuleHook& hook = *first_->hook;
  hook.products->compute({pass, hook.group_module, out, a, b, adds, group_ends_E_});
}

void ExpertGroup::forward_out(const at::Tensor& out, const at::Tensor& x) const {
  compute(ProductPass::Forward, out, x, value_EOI_, /*adds=*/false);
}

void ExpertGroup::backward_out(const at::Tensor& dx, const at::Tensor& dy, bool adds) const {
  compute(ProductPass::GradInput, dx, dy, value_EOI_, adds);
}

void ExpertGroup::accumulate_gradients(const at::Tensor& dy, const at::Tensor& x) const {
  compute(ProductPass::GradWeight, grad_EOI_, dy, x, /*adds=*/!first_->overwrite);
}

}  // namespace ciuic::core
