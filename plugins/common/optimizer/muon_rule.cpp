// SPDX-License-Identifier: MIT
#include "optimizer/muon_rule.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optimizer/muon_rule.cpp"
// clang-format off: Highway includes this file once more for each target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "optimizer/columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ciuic::plugins::optimizer::HWY_NAMESPACE {

struct FollowElements {
  const MuonMomentum& s;
  const Block& b;
  float* direction;

  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto momentum = hn::Set(d, s.momentum);
    const auto share =
        hn::Mul(hn::Mul(load(d, b.grad, i), hn::Set(d, s.grad_scale)), hn::Set(d, s.rest));
    const auto m = hn::Add(hn::Mul(load(d, b.state[0], i), momentum), share);
    store(d, m, b.state[0], i);
    hn::StoreU(s.nesterov ? hn::Add(share, hn::Mul(m, momentum)) : m, d, direction + i);
  }
};

struct StepElements {
  const MuonStep& s;
  const Block& b;
  const float* orthogonal;

  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto p = hn::Mul(load(d, b.master, i), hn::Set(d, s.decay));
    store_value(d, hn::Add(p, hn::Mul(hn::LoadU(d, orthogonal + i), hn::Set(d, s.size))), b, i);
  }
};

void follow_block(const MuonMomentum& s, const Block& block, float* direction) {
  const Block b = block;
  vector_loop(b.count, FollowElements{s, b, direction});
}

void step_block(const MuonStep& s, const Block& block, const float* orthogonal) {
  const Block b = block;
  vector_loop(b.count, StepElements{s, b, orthogonal});
}

}  // namespace ciuic::plugins::optimizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ciuic::plugins::optimizer {

HWY_EXPORT(follow_block);
HWY_EXPORT(step_block);

void muon_follow(const MuonMomentum& s, const Block& block, float* direction) {
  HWY_DYNAMIC_DISPATCH(follow_block)(s, block, direction);
}

void muon_step(const MuonStep& s, const Block& block, const float* orthogonal) {
  HWY_DYNAMIC_DISPATCH(step_block)(s, block, orthogonal);
}

}  // namespace ciuic::plugins::optimizer
#endif  // HWY_ONCE
