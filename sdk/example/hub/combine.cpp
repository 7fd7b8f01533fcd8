// SPDX-License-Identifier: MIT
#include "combine.h"

#include <cmath>
#include <cstring>

#include <ciuic/view.hpp>

namespace hub {
namespace {

/// Sums of floats are kept in double, sums of integers in their own type (they wrap around).
template <typename T>
struct Wide {
  using type = T;
};
template <>
struct Wide<float> {
  using type = double;
};

/// NaN wins, as the contract says: it propagates.
template <typename T>
T smaller(T a, T b) {
  return a != a || a < b ? a : b;
}
template <typename T>
T larger(T a, T b) {
  return a != a || a > b ? a : b;
}

template <typename T>
T apply(uint32_t reduce, T a, T b) {
  switch (reduce) {
    case CIUIC_REDUCE_MIN:
      return smaller(a, b);
    case CIUIC_REDUCE_MAX:
      return larger(a, b);
    case CIUIC_REDUCE_PROD:
      return static_cast<T>(a * b);
    default:
      return static_cast<T>(a + b);
  }
}

template <typename T>
T element(const Bytes& bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
Bytes reduce_typed(uint32_t reduce, const std::vector<Bytes>& inputs) {
  using W = typename Wide<T>::type;
  Bytes out(inputs[0].size());
  for (size_t i = 0; i < out.size() / sizeof(T); ++i) {
    W sum = element<T>(inputs[0], i);
    for (size_t rank = 1; rank < inputs.size(); ++rank) {
      sum = apply<W>(reduce, sum, element<T>(inputs[rank], i));
    }
    if (reduce == CIUIC_REDUCE_AVG) {
      sum = static_cast<W>(sum / static_cast<W>(inputs.size()));
    }
    const T result = static_cast<T>(sum);
    std::memcpy(out.data() + i * sizeof(T), &result, sizeof(T));
  }
  return out;
}

}  // namespace

bool can_reduce(uint32_t reduce, ciuic_dtype dtype) {
  const bool is_f32 = ciuic::same(dtype, ciuic::kF32);
  const bool is_known = is_f32 || ciuic::same(dtype, ciuic::kF64) ||
                        ciuic::same(dtype, ciuic::kI64) || ciuic::same(dtype, ciuic::kI32) ||
                        ciuic::same(dtype, ciuic::kU8);
  return is_known && (reduce == CIUIC_REDUCE_AVG
                          ? is_f32
                          : reduce == CIUIC_REDUCE_SUM || reduce == CIUIC_REDUCE_MIN ||
                                reduce == CIUIC_REDUCE_MAX || reduce == CIUIC_REDUCE_PROD);
}

Bytes reduce_all(uint32_t reduce, ciuic_dtype dtype, const std::vector<Bytes>& inputs) {
  if (ciuic::same(dtype, ciuic::kF32)) {
    return reduce_typed<float>(reduce, inputs);
  }
  if (ciuic::same(dtype, ciuic::kF64)) {
    return reduce_typed<double>(reduce, inputs);
  }
  // Unsigned, so that a sum wraps around instead of overflowing; order needs the sign.
  const bool orders = reduce == CIUIC_REDUCE_MIN || reduce == CIUIC_REDUCE_MAX;
  if (ciuic::same(dtype, ciuic::kI64)) {
    return orders ? reduce_typed<int64_t>(reduce, inputs) : reduce_typed<uint64_t>(reduce, inputs);
  }
  if (ciuic::same(dtype, ciuic::kI32)) {
    return orders ? reduce_typed<int32_t>(reduce, inputs) : reduce_typed<uint32_t>(reduce, inputs);
  }
  return reduce_typed<uint8_t>(reduce, inputs);
}

}  // namespace hub
