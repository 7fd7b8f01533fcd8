// SPDX-License-Identifier: MIT
#include "optimizer/sgd_rule.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optimizer/sgd_rule.cpp"
// clang-format off: Highway includes this file once more for each target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "optimizer/columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ciuic::plugins::optimizer::HWY_NAMESPACE {

struct SgdElements {
  const SgdScalars& s;
  const Block& b;

  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto p = load(d, b.master, i);
    const auto g = hn::Add(hn::Mul(load(d, b.grad, i), hn::Set(d, s.grad_scale)),
                           hn::Mul(p, hn::Set(d, s.decay)));
    auto direction = g;
    if (s.momentum != 0) {
      const auto momentum = hn::Set(d, s.momentum);
      const auto buffer =
          hn::Add(hn::Mul(load(d, b.state[0], i), momentum), hn::Mul(g, hn::Set(d, s.rest)));
      store(d, buffer, b.state[0], i);
      direction = s.nesterov ? hn::Add(g, hn::Mul(buffer, momentum)) : buffer;
    }
    store_value(d, hn::Add(p, hn::Mul(direction, hn::Set(d, s.step))), b, i);
  }
};

void sgd_block(const SgdScalars& scalars, const Block& block) {
  const SgdScalars s = scalars;
  const Block b = block;
  vector_loop(b.count, SgdElements{s, b});
}

}  // namespace ciuic::plugins::optimizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ciuic::plugins::optimizer {

HWY_EXPORT(sgd_block);

SgdScalars sgd_scalars(const SgdOptions& options, const ciuic_update& u, double weight_decay) {
  SgdScalars s{};
  s.grad_scale = static_cast<float>(u.grad_scale);
  s.decay = static_cast<float>(weight_decay);
  s.momentum = static_cast<float>(options.momentum);
  s.rest = u.update == 1 ? 1.0F : static_cast<float>(1 - options.dampening);
  s.step = static_cast<float>(-u.lr);
  s.nesterov = options.nesterov;
  return s;
}

void sgd_update(const SgdScalars& s, const Block& block) {
  HWY_DYNAMIC_DISPATCH(sgd_block)(s, block);
}

}  // namespace ciuic::plugins::optimizer
#endif  // HWY_ONCE
