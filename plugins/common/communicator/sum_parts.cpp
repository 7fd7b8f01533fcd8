// SPDX-License-Identifier: MIT
#include "communicator/sum_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "communicator/sum_parts.cpp"
// clang-format off: Highway includes this file once more for each target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <cstring>

#include <ciuic/view.hpp>

#include "optimizer/columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ciuic::plugins::optimizer::HWY_NAMESPACE {

/// The sum of n columns' vectors at element i, as a balanced tree over the lower half and the rest.
template <int n, class D>
HWY_INLINE hn::Vec<D> sum_tree(D d, const Column* columns, int64_t i) {
  if constexpr (n == 1) {
    return load(d, columns[0], i);
  } else {
    constexpr int half = n <= 2 ? 1 : n <= 4 ? 2 : 4;
    return hn::Add(sum_tree<half>(d, columns, i), sum_tree<n - half>(d, columns + half, i));
  }
}

template <int n>
void sum_of(const Column* given, int64_t count, float divisor, const Column& out) {
  Column columns[n];
  std::copy_n(given, n, columns);
  const Column to = out;
  vector_loop(count, [&](auto d, int64_t i) HWY_ATTR {
    auto sum = sum_tree<n>(d, columns, i);
    if (HWY_UNLIKELY(divisor != 1)) {
      sum = hn::Div(sum, hn::Set(d, divisor));
    }
    store(d, sum, to, i);
  });
}

void sum_columns(const Column* columns, int n, int64_t count, float divisor, const Column& out) {
  switch (n) {
    case 1:
      return sum_of<1>(columns, count, divisor, out);
    case 2:
      return sum_of<2>(columns, count, divisor, out);
    case 3:
      return sum_of<3>(columns, count, divisor, out);
    case 4:
      return sum_of<4>(columns, count, divisor, out);
    case 5:
      return sum_of<5>(columns, count, divisor, out);
    case 6:
      return sum_of<6>(columns, count, divisor, out);
    case 7:
      return sum_of<7>(columns, count, divisor, out);
    default:
      return sum_of<8>(columns, count, divisor, out);
  }
}

}  // namespace ciuic::plugins::optimizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ciuic::plugins::optimizer {
HWY_EXPORT(sum_columns);

namespace {
void sum(const Column* columns, size_t n, int64_t count, int divisor, const Column& out) {
  HWY_DYNAMIC_DISPATCH(sum_columns)
  (columns, static_cast<int>(n), count, static_cast<float>(divisor), out);
}
}  // namespace
}  // namespace ciuic::plugins::optimizer

namespace ciuic::plugins {
namespace {

using optimizer::Column;
using optimizer::NumberFormat;

constexpr int64_t kBlock = 2048;  // elements: copies of a block's sum come from the first cache

NumberFormat format_of(ciuic_dtype dtype) {
  return same(dtype, kF32)    ? NumberFormat::F32
         : same(dtype, kBF16) ? NumberFormat::BF16
                              : NumberFormat::F16;
}

}  // namespace

bool has_sum_kernel(ciuic_dtype dtype, size_t num_parts) {
  return num_parts <= kMostPartsInVectors &&
         (same(dtype, kF32) || same(dtype, kBF16) || same(dtype, kF16));
}

void sum_in_vectors(ciuic_dtype dtype, std::span<const char* const> parts, int64_t num_elements,
                    int divisor, std::span<char* const> outs) {
  const NumberFormat format = format_of(dtype);
  const int64_t width = optimizer::bytes_of(format);
  const int64_t block = outs.size() > 1 ? kBlock : num_elements;
  for (int64_t begin = 0; begin < num_elements; begin += block) {
    const int64_t count = std::min(block, num_elements - begin);
    Column columns[kMostPartsInVectors];
    for (size_t p = 0; p < parts.size(); ++p) {
      columns[p] = {const_cast<char*>(parts[p]) + begin * width, format};
    }
    char* const first = outs[0] + begin * width;
    optimizer::sum(columns, parts.size(), count, divisor, {first, format});
    for (size_t o = 1; o < outs.size(); ++o) {
      std::memcpy(outs[o] + begin * width, first, static_cast<size_t>(count * width));
    }
  }
}

void widen(ciuic_dtype dtype, const void* in, float* out, int64_t num_elements) {
  const Column from{static_cast<char*>(const_cast<void*>(in)), format_of(dtype)};
  optimizer::sum(&from, 1, num_elements, 1, {reinterpret_cast<char*>(out), NumberFormat::F32});
}

void narrow(ciuic_dtype dtype, const float* in, void* out, int64_t num_elements) {
  const Column from{reinterpret_cast<char*>(const_cast<float*>(in)), NumberFormat::F32};
  optimizer::sum(&from, 1, num_elements, 1, {static_cast<char*>(out), format_of(dtype)});
}

}  // namespace ciuic::plugins
#endif  // HWY_ONCE
