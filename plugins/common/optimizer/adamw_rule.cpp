// SPDX-License-Identifier: MIT
#include "optimizer/adamw_rule.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optimizer/adamw_rule.cpp"
// clang-format off: Highway includes this file once more for each target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "optimizer/columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ciuic::plugins::optimizer::HWY_NAMESPACE {

struct AdamWElements {
  const AdamWScalars& s;
  const Block& b;

  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto g = hn::Mul(load(d, b.grad, i), hn::Set(d, s.grad_scale));
    const auto m0 = load(d, b.state[0], i);
    const auto start = s.from_moment ? m0 : g;
    const auto m = hn::Add(start, hn::Mul(hn::Set(d, s.toward), hn::Sub(g, m0)));
    const auto v = hn::Add(hn::Mul(load(d, b.state[1], i), hn::Set(d, s.beta2)),
                           hn::Mul(hn::Mul(hn::Set(d, s.one_minus_beta2), g), g));
    const auto root = hn::Div(hn::Sqrt(v), hn::Set(d, s.correction2));
    const auto step =
        hn::Div(hn::Mul(hn::Set(d, s.step_size), m), hn::Add(root, hn::Set(d, s.epsilon)));
    store_states(d, m, v, b, i);
    store_value(d, hn::Add(hn::Mul(load(d, b.master, i), hn::Set(d, s.decay)), step), b, i);
  }
};

// Copies, which no store can change, stay in registers.
void adamw_block(const AdamWScalars& scalars, const Block& block) {
  const AdamWScalars s = scalars;
  const Block b = block;
  vector_loop(b.count, AdamWElements{s, b});
}

}  // namespace ciuic::plugins::optimizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ciuic::plugins::optimizer {

HWY_EXPORT(adamw_block);

AdamWScalars adamw_scalars(const AdamWOptions& options, const ciuic_update& u,
                           double weight_decay) {
  const auto t = static_cast<double>(u.update);
  AdamWScalars s{};
  s.grad_scale = static_cast<float>(u.grad_scale);
  s.decay = static_cast<float>(1 - u.lr * weight_decay);
  const auto one_minus_beta1 = static_cast<float>(1 - options.beta1);
  s.from_moment = one_minus_beta1 < 0.5F;
  s.toward = s.from_moment ? one_minus_beta1 : one_minus_beta1 - 1.0F;
  s.beta2 = static_cast<float>(options.beta2);
  s.one_minus_beta2 = static_cast<float>(1 - options.beta2);
  s.correction2 = static_cast<float>(std::sqrt(1 - std::pow(options.beta2, t)));
  s.epsilon = static_cast<float>(options.epsilon);
  s.step_size = static_cast<float>(-u.lr / (1 - std::pow(options.beta1, t)));
  return s;
}

void adamw_update(const AdamWScalars& s, const Block& block) {
  HWY_DYNAMIC_DISPATCH(adamw_block)(s, block);
}

}  // namespace ciuic::plugins::optimizer
#endif  // HWY_ONCE
