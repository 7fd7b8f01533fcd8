// SPDX-License-Identifier: MIT
//
// An element-wise loop in vectors, then one by one. Included once for each target of Highway
// (-inl.h: its include guard toggles).
#if defined(CIUIC_OPTIMIZER_VECTOR_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CIUIC_OPTIMIZER_VECTOR_LOOP_INL_H_
#undef CIUIC_OPTIMIZER_VECTOR_LOOP_INL_H_
#else
#define CIUIC_OPTIMIZER_VECTOR_LOOP_INL_H_
#endif

#include <cstdint>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ciuic::plugins::optimizer::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(d, i) for vectors of `d` that start at element i.
template <class Body>
HWY_INLINE void vector_loop(int64_t count, const Body& body) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    body(d, i);
  }
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i) {
    body(one, i);
  }
}

/// The lower halves of 32-bit lanes.
template <class D, class V>
HWY_INLINE void store_low(D, V v, uint16_t* out) {
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(hn::TruncateTo(d16, v), d16, out);
}

}  // namespace ciuic::plugins::optimizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
