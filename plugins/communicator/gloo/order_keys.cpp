// SPDX-License-Identifier: MIT
#include "order_keys.h"

#include <cstring>
#include <limits>

#include <ciuic/view.hpp>

namespace ciuic::plugins::gloo {
namespace {

/// Flips the magnitude bits of negative numbers: floats in two's complement order. Its own inverse.
template <typename Int>
Int flip(Int bits) {
  return bits ^ ((bits >> (sizeof(Int) * 8 - 1)) & std::numeric_limits<Int>::max());
}

template <typename Float, typename Int>
void to_keys(Int nan_key, char* data, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    Float value;
    Int bits;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(value)), sizeof(value));
    std::memcpy(&bits, &value, sizeof(bits));
    bits = value != value ? nan_key : flip(bits);
    std::memcpy(data + i * static_cast<int64_t>(sizeof(bits)), &bits, sizeof(bits));
  }
}

template <typename Int>
void from_keys(char* data, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    Int bits;
    std::memcpy(&bits, data + i * static_cast<int64_t>(sizeof(bits)), sizeof(bits));
    bits = flip(bits);
    std::memcpy(data + i * static_cast<int64_t>(sizeof(bits)), &bits, sizeof(bits));
  }
}

}  // namespace

void to_order_keys_(ciuic_dtype dtype, uint32_t reduce, void* data, int64_t num_elements) {
  const bool max = reduce == CIUIC_REDUCE_MAX;
  auto* bytes = static_cast<char*>(data);
  if (same(dtype, kF64)) {
    using Limits = std::numeric_limits<int64_t>;
    to_keys<double, int64_t>(max ? Limits::max() : Limits::min(), bytes, num_elements);
  } else {
    using Limits = std::numeric_limits<int32_t>;
    to_keys<float, int32_t>(max ? Limits::max() : Limits::min(), bytes, num_elements);
  }
}

void from_order_keys_(ciuic_dtype dtype, void* data, int64_t num_elements) {
  auto* bytes = static_cast<char*>(data);
  if (same(dtype, kF64)) {
    from_keys<int64_t>(bytes, num_elements);
  } else {
    from_keys<int32_t>(bytes, num_elements);
  }
}

}  // namespace ciuic::plugins::gloo
