// SPDX-License-Identifier: MIT
//
// Integer arithmetic for bf16 and, after Marat Dukhan's FP16, two exact products for fp16: the
// vector units' own conversions differ in NaNs and subnormals, and older ones have none.
#include "optimizer/narrow_numbers.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optimizer/narrow_numbers.cpp"
// clang-format off: Highway includes this file once more for each target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "optimizer/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ciuic::plugins::optimizer::HWY_NAMESPACE {

template <class D>
using Bits = hn::RebindToUnsigned<D>;

/// Quiet NaNs where `bits` is one, else `rounded`.
template <class D, class V>
V keep_nan(D d, V bits, V rounded) {
  const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFFU));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(d, 0x40U));
  return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7F800000U)), quiet, rounded);
}

struct FromBf16 {
  const uint16_t* in;
  float* out;
  template <class D>
  void operator()(D d, int64_t i) const {
    const Bits<D> du;
    const hn::Rebind<uint16_t, D> d16;
    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, in + i)));
    hn::StoreU(hn::BitCast(d, bits), d, out + i);
  }
};

struct ToBf16 {
  const float* in;
  uint16_t* out;
  template <class D>
  void operator()(D d, int64_t i) const {
    const Bits<D> du;
    const auto bits = hn::BitCast(du, hn::LoadU(d, in + i));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
    const auto sum = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFU)));
    store_low(du, keep_nan(du, bits, hn::ShiftRight<16>(sum)), out + i);
  }
};

/// Chris Wellons' lowbias32: a bijection in which every bit moves every other.
template <class D, class V>
V scramble(D d, V x) {
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, 0x7FEB352DU));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, 0x846CA68BU));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

/// 16 random bits are added below the kept ones.
struct ToBf16ByChance {
  uint32_t key_low, key_high, first;
  const float* in;
  uint16_t* out;
  template <class D>
  void operator()(D d, int64_t i) const {
    const Bits<D> du;
    const auto index = hn::Iota(du, first + static_cast<uint32_t>(i));
    const auto once = scramble(du, hn::Xor(index, hn::Set(du, key_low)));
    const auto random = scramble(du, hn::Xor(once, hn::Set(du, key_high)));
    const auto bits = hn::BitCast(du, hn::LoadU(d, in + i));
    const auto sum = hn::Add(bits, hn::ShiftRight<16>(random));
    store_low(du, keep_nan(du, bits, hn::ShiftRight<16>(sum)), out + i);
  }
};

struct FromF16 {
  const uint16_t* in;
  float* out;
  template <class D>
  void operator()(D d, int64_t i) const {
    const Bits<D> du;
    const hn::Rebind<uint16_t, D> d16;
    const auto word = hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, in + i)));
    const auto sign = hn::And(word, hn::Set(du, 0x80000000U));
    const auto twice = hn::Add(word, word);
    const auto shifted = hn::Add(hn::ShiftRight<4>(twice), hn::Set(du, 0xE0U << 23));
    const auto normal = hn::Mul(hn::BitCast(d, shifted), hn::Set(d, 0x1.0p-112F));
    const auto tiny = hn::Or(hn::ShiftRight<17>(twice), hn::Set(du, 126U << 23));
    const auto subnormal = hn::Sub(hn::BitCast(d, tiny), hn::Set(d, 0.5F));
    const auto is_subnormal = hn::Lt(twice, hn::Set(du, 1U << 27));
    const auto magnitude =
        hn::IfThenElse(is_subnormal, hn::BitCast(du, subnormal), hn::BitCast(du, normal));
    hn::StoreU(hn::BitCast(d, hn::Or(sign, magnitude)), d, out + i);
  }
};

struct ToF16 {
  const float* in;
  uint16_t* out;
  template <class D>
  void operator()(D d, int64_t i) const {
    const Bits<D> du;
    const auto x = hn::LoadU(d, in + i);
    const auto word = hn::BitCast(du, x);
    const auto twice = hn::Add(word, word);
    // Overflow becomes infinite in the first product; the second brings the rest into range.
    const auto scaled =
        hn::Mul(hn::Mul(hn::Abs(x), hn::Set(d, 0x1.0p+112F)), hn::Set(d, 0x1.0p-110F));
    // Adding a number of the right exponent rounds to the bits that fp16 has.
    const auto exponent =
        hn::Max(hn::And(twice, hn::Set(du, 0xFF000000U)), hn::Set(du, 0x71000000U));
    const auto anchor = hn::Add(hn::ShiftRight<1>(exponent), hn::Set(du, 0x07800000U));
    const auto bits = hn::BitCast(du, hn::Add(hn::BitCast(d, anchor), scaled));
    const auto magnitude = hn::Add(hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 0x7C00U)),
                                   hn::And(bits, hn::Set(du, 0x0FFFU)));
    const auto is_nan = hn::Gt(twice, hn::Set(du, 0xFF000000U));
    const auto number = hn::IfThenElse(is_nan, hn::Set(du, 0x7E00U), magnitude);
    const auto sign = hn::ShiftRight<16>(hn::And(word, hn::Set(du, 0x80000000U)));
    store_low(du, hn::Or(sign, number), out + i);
  }
};

void from_bf16(const uint16_t* in, int64_t count, float* out) {
  vector_loop(count, FromBf16{in, out});
}
void to_bf16(const float* in, int64_t count, uint16_t* out) { vector_loop(count, ToBf16{in, out}); }
void to_bf16_by_chance(uint64_t key, uint32_t first, const float* in, int64_t count,
                       uint16_t* out) {
  vector_loop(count, ToBf16ByChance{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32),
                                    first, in, out});
}
void from_f16(const uint16_t* in, int64_t count, float* out) {
  vector_loop(count, FromF16{in, out});
}
void to_f16(const float* in, int64_t count, uint16_t* out) { vector_loop(count, ToF16{in, out}); }

}  // namespace ciuic::plugins::optimizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ciuic::plugins::optimizer {

HWY_EXPORT(from_bf16);
HWY_EXPORT(to_bf16);
HWY_EXPORT(to_bf16_by_chance);
HWY_EXPORT(from_f16);
HWY_EXPORT(to_f16);

namespace {

/// Sebastiano Vigna's splitmix64.
uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace

int64_t bytes_of(NumberFormat format) { return format == NumberFormat::F32 ? 4 : 2; }

void widen(NumberFormat format, const void* in, int64_t count, float* out) {
  const auto* codes = static_cast<const uint16_t*>(in);
  if (format == NumberFormat::BF16) {
    HWY_DYNAMIC_DISPATCH(from_bf16)(codes, count, out);
  } else {
    HWY_DYNAMIC_DISPATCH(from_f16)(codes, count, out);
  }
}

void narrow(NumberFormat format, const float* in, int64_t count, void* out) {
  auto* codes = static_cast<uint16_t*>(out);
  if (format == NumberFormat::BF16) {
    HWY_DYNAMIC_DISPATCH(to_bf16)(in, count, codes);
  } else {
    HWY_DYNAMIC_DISPATCH(to_f16)(in, count, codes);
  }
}

uint64_t hash_of(const RoundingKey& key) {
  uint64_t hash = mixed(mixed(mixed(key.seed) ^ key.update) ^ key.tensor);
  for (const char c : key.parameter) {
    hash = mixed(hash ^ static_cast<unsigned char>(c));
  }
  return hash;
}

void narrow_by_chance(uint64_t key_hash, uint64_t first, const float* in, int64_t count,
                      uint16_t* out) {
  // The upper half of an index goes into the key, so a run ends where that half changes.
  while (count > 0) {
    const auto low = static_cast<uint32_t>(first);
    const int64_t run = std::min(count, (int64_t{1} << 32) - int64_t{low});
    const uint64_t high = first >> 32;
    HWY_DYNAMIC_DISPATCH(to_bf16_by_chance)
    (high == 0 ? key_hash : mixed(key_hash ^ high), low, in, run, out);
    first += static_cast<uint64_t>(run);
    in += run;
    out += run;
    count -= run;
  }
}

}  // namespace ciuic::plugins::optimizer
#endif  // HWY_ONCE
