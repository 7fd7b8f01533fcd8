// SPDX-License-Identifier: MIT
#include "optimizer/lion_rule.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optimizer/lion_rule.cpp"
// clang-format off: Highway includes this file once more for each target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "optimizer/columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ciuic::plugins::optimizer::HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE V sign_of(D d, V x) {
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(d, 1.0F);
  const auto sign =
      hn::Sub(hn::IfThenElseZero(hn::Gt(x, zero), one), hn::IfThenElseZero(hn::Lt(x, zero), one));
  return hn::IfThenElse(hn::IsNaN(x), x, sign);
}

struct LionElements {
  const LionScalars& s;
  const Block& b;

  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto g = hn::Mul(load(d, b.grad, i), hn::Set(d, s.grad_scale));
    const auto m = load(d, b.state[0], i);
    const auto direction =
        hn::Add(hn::Mul(m, hn::Set(d, s.beta1)), hn::Mul(g, hn::Set(d, s.one_minus_beta1)));
    const auto p = hn::Mul(load(d, b.master, i), hn::Set(d, s.decay));
    const auto next =
        hn::Add(hn::Mul(m, hn::Set(d, s.beta2)), hn::Mul(g, hn::Set(d, s.one_minus_beta2)));
    store(d, next, b.state[0], i);
    store_value(d, hn::Add(p, hn::Mul(sign_of(d, direction), hn::Set(d, s.step))), b, i);
  }
};

void lion_block(const LionScalars& scalars, const Block& block) {
  const LionScalars s = scalars;
  const Block b = block;
  vector_loop(b.count, LionElements{s, b});
}

}  // namespace ciuic::plugins::optimizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ciuic::plugins::optimizer {

HWY_EXPORT(lion_block);

LionScalars lion_scalars(const LionOptions& options, const ciuic_update& u, double weight_decay) {
  LionScalars s{};
  s.grad_scale = static_cast<float>(u.grad_scale);
  s.decay = static_cast<float>(1 - u.lr * weight_decay);
  s.beta1 = static_cast<float>(options.beta1);
  s.one_minus_beta1 = static_cast<float>(1 - options.beta1);
  s.beta2 = static_cast<float>(options.beta2);
  s.one_minus_beta2 = static_cast<float>(1 - options.beta2);
  s.step = static_cast<float>(-u.lr);
  return s;
}

void lion_update(const LionScalars& s, const Block& block) {
  HWY_DYNAMIC_DISPATCH(lion_block)(s, block);
}

}  // namespace ciuic::plugins::optimizer
#endif  // HWY_ONCE
