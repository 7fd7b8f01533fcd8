// SPDX-License-Identifier: MIT
//
// Columns in vectors: fp32 from any format, and back. The same bits on every vector unit: integer
// arithmetic for bf16 and, after Marat Dukhan's FP16, exact products for fp16, because the units'
// own conversions differ in NaNs and subnormals, and older ones have none. A column's format is
// asked for vector by vector: the branch is foretold, and the loop is one for all formats.
//
// Included once for each target of Highway (-inl.h: its include guard toggles).
#if defined(CIUIC_OPTIMIZER_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CIUIC_OPTIMIZER_COLUMNS_INL_H_
#undef CIUIC_OPTIMIZER_COLUMNS_INL_H_
#else
#define CIUIC_OPTIMIZER_COLUMNS_INL_H_
#endif

#include <cstdint>
#include <hwy/highway.h>

#include "optimizer/block.h"

HWY_BEFORE_NAMESPACE();
namespace ciuic::plugins::optimizer::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Bits = hn::RebindToUnsigned<D>;

/// Calls body(d, i) for vectors of `d` that start at element i, then for single elements.
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

// ---- codes of 16 bits in the lower halves of 32-bit lanes ----

template <class D>
HWY_INLINE hn::Vec<Bits<D>> load_codes(D, const char* data, int64_t i) {
  const hn::Rebind<uint16_t, D> d16;
  return hn::PromoteTo(Bits<D>(), hn::LoadU(d16, reinterpret_cast<const uint16_t*>(data) + i));
}

template <class D>
HWY_INLINE void store_codes(D, hn::Vec<Bits<D>> codes, char* data, int64_t i) {
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(hn::TruncateTo(d16, codes), d16, reinterpret_cast<uint16_t*>(data) + i);
}

/// bf16: the upper half of x's bits and what is added below it, but where x is NaN a quiet one.
template <class D>
HWY_INLINE hn::Vec<Bits<D>> upper_half(D, hn::Vec<D> x, hn::Vec<Bits<D>> added) {
  const Bits<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000U));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(x));
  return hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, hn::Add(bits, added)));
}

template <class D>
HWY_INLINE hn::Vec<Bits<D>> bf16_of(D d, hn::Vec<D> x) {
  const Bits<D> du;
  const auto odd = hn::And(hn::ShiftRight<16>(hn::BitCast(du, x)), hn::Set(du, 1U));
  return upper_half(d, x, hn::Add(odd, hn::Set(du, 0x7FFFU)));
}

template <class D>
HWY_INLINE hn::Vec<D> from_f16(D d, hn::Vec<Bits<D>> code) {
  const Bits<D> du;
  const auto word = hn::ShiftLeft<16>(code);
  const auto sign = hn::And(word, hn::Set(du, 0x80000000U));
  const auto twice = hn::Add(word, word);
  const auto shifted = hn::Add(hn::ShiftRight<4>(twice), hn::Set(du, 0xE0U << 23));
  const auto normal = hn::Mul(hn::BitCast(d, shifted), hn::Set(d, 0x1.0p-112F));
  const auto tiny = hn::Or(hn::ShiftRight<17>(twice), hn::Set(du, 126U << 23));
  const auto subnormal = hn::Sub(hn::BitCast(d, tiny), hn::Set(d, 0.5F));
  const auto is_subnormal = hn::Lt(twice, hn::Set(du, 1U << 27));
  const auto magnitude =
      hn::IfThenElse(is_subnormal, hn::BitCast(du, subnormal), hn::BitCast(du, normal));
  return hn::BitCast(d, hn::Or(sign, magnitude));
}

template <class D>
HWY_INLINE hn::Vec<Bits<D>> f16_of(D d, hn::Vec<D> x) {
  const Bits<D> du;
  const auto word = hn::BitCast(du, x);
  const auto twice = hn::Add(word, word);
  // Overflow becomes infinite in the first product; the second brings the rest into range.
  const auto scaled =
      hn::Mul(hn::Mul(hn::Abs(x), hn::Set(d, 0x1.0p+112F)), hn::Set(d, 0x1.0p-110F));
  // Adding a number of the right exponent rounds to the bits that fp16 has.
  const auto exponent = hn::Max(hn::And(twice, hn::Set(du, 0xFF000000U)), hn::Set(du, 0x71000000U));
  const auto anchor = hn::Add(hn::ShiftRight<1>(exponent), hn::Set(du, 0x07800000U));
  const auto bits = hn::BitCast(du, hn::Add(hn::BitCast(d, anchor), scaled));
  const auto magnitude = hn::Add(hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 0x7C00U)),
                                 hn::And(bits, hn::Set(du, 0x0FFFU)));
  const auto is_nan = hn::Gt(twice, hn::Set(du, 0xFF000000U));
  const auto number = hn::IfThenElse(is_nan, hn::Set(du, 0x7E00U), magnitude);
  return hn::Or(hn::ShiftRight<16>(hn::And(word, hn::Set(du, 0x80000000U))), number);
}

// ---- columns ----

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const Column& column, int64_t i) {
  if (HWY_LIKELY(column.format == NumberFormat::F32)) {
    return hn::LoadU(d, reinterpret_cast<const float*>(column.data) + i);
  }
  const auto codes = load_codes(d, column.data, i);
  return column.format == NumberFormat::BF16 ? hn::BitCast(d, hn::ShiftLeft<16>(codes))
                                             : from_f16(d, codes);
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> x, const Column& column, int64_t i) {
  if (HWY_LIKELY(column.format == NumberFormat::F32)) {
    hn::StoreU(x, d, reinterpret_cast<float*>(column.data) + i);
  } else {
    store_codes(d, column.format == NumberFormat::BF16 ? bf16_of(d, x) : f16_of(d, x), column.data,
                i);
  }
}

/// The master, and its copy.
template <class D>
HWY_INLINE void store_value(D d, hn::Vec<D> x, const Block& b, int64_t i) {
  store(d, x, b.master, i);
  if (b.copy.data != nullptr) {
    store(d, x, b.copy, i);
  }
}

// ---- state, by chance ----

/// 32 random bits of each element, 16 for either state tensor: Chris Wellons' lowbias32, a bijection
/// in which every bit moves every other, of the index with half of the key, then a product with the
/// other half. (Iota of a constant is one; of a variable it goes through memory.)
template <class D>
HWY_INLINE hn::Vec<Bits<D>> random_bits(D, const Block& b, int64_t i) {
  const Bits<D> du;
  const auto index = hn::Add(hn::Iota(du, 0), hn::Set(du, b.first + static_cast<uint32_t>(i)));
  auto x = hn::Xor(index, hn::Set(du, static_cast<uint32_t>(b.key)));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, 0x7FEB352DU));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(du, 0x846CA68BU));
  x = hn::Xor(x, hn::ShiftRight<16>(x));
  x = hn::Mul(x, hn::Set(du, static_cast<uint32_t>(b.key >> 32) | 1U));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

/// State tensors 0 and 1. By chance: 16 random bits are added below those that stay, so that a number
/// goes to the neighbour above with the probability of its distance from the one below.
template <class D>
HWY_INLINE void store_states(D d, hn::Vec<D> x0, hn::Vec<D> x1, const Block& b, int64_t i) {
  if (HWY_LIKELY(!b.by_chance || b.state[0].format == NumberFormat::F32)) {
    store(d, x0, b.state[0], i);
    store(d, x1, b.state[1], i);
    return;
  }
  const Bits<D> du;
  const auto random = random_bits(d, b, i);
  const auto low = hn::And(random, hn::Set(du, 0xFFFFU));
  store_codes(d, upper_half(d, x0, low), b.state[0].data, i);
  store_codes(d, upper_half(d, x1, hn::ShiftRight<16>(random)), b.state[1].data, i);
}

}  // namespace ciuic::plugins::optimizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
