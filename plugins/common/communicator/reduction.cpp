// SPDX-License-Identifier: MIT
#include "reduction.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include <ciuic/view.hpp>

#include "communicator/capabilities.h"
#include "communicator/sum_parts.h"

namespace ciuic::plugins {
namespace {

constexpr int64_t kBlock =
    1024;  // elements: the working set of a block stays in the first-level caches

/// a = a op b.
template <typename T, typename Op>
void combine(T* __restrict a, const T* __restrict b, int64_t n, Op op) {
  for (int64_t i = 0; i < n; ++i) {
    a[i] = op(a[i], b[i]);
  }
}

template <typename T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

template <typename T>
T wrapping_product(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <typename T>
void combine(uint32_t reduce, T* a, const T* b, int64_t n) {
  if constexpr (std::is_integral_v<T>) {
    if (reduce == CIUIC_REDUCE_OR) {
      return combine(a, b, n, [](T x, T y) { return static_cast<T>(x | y); });
    }
    if (reduce == CIUIC_REDUCE_AND) {
      return combine(a, b, n, [](T x, T y) { return static_cast<T>(x & y); });
    }
  }
  switch (reduce) {
    case CIUIC_REDUCE_MIN:
      return combine(a, b, n, [](T x, T y) { return y < x || y != y ? y : x; });
    case CIUIC_REDUCE_MAX:
      return combine(a, b, n, [](T x, T y) { return y > x || y != y ? y : x; });
    case CIUIC_REDUCE_PROD:
      return combine(a, b, n, wrapping_product<T>);
    default:
      return combine(a, b, n, wrapping_sum<T>);
  }
}

/// For 16-bit floats too this rounds once: a quotient of an fp32 number by an integer that is not
/// exact lies further from every fp32 number than the division's rounding, so narrow() sees no tie
/// that is none.
template <typename T>
void divide_all(T* data, int64_t n, int divisor) {
  for (int64_t i = 0; i < n; ++i) {
    data[i] /= static_cast<T>(divisor);
  }
}

/// T is the type of the arithmetic; load and store move n elements between it and the tensors'
/// type.
template <typename T, typename Load, typename Store>
void reduce_blocks(uint32_t reduce, std::span<const char* const> parts, int64_t n, int64_t width,
                   void* out, Load load, Store store) {
  const auto num_parts = static_cast<int64_t>(parts.size());
  std::vector<T> rows(static_cast<size_t>(std::min(n, kBlock) * num_parts));
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    const auto row = [&](int64_t p) { return rows.data() + p * count; };
    for (int64_t p = 0; p < num_parts; ++p) {
      load(parts[static_cast<size_t>(p)] + begin * width, row(p), count);
    }
    for (int64_t step = 1; step < num_parts; step *= 2) {
      for (int64_t p = 0; p + step < num_parts; p += 2 * step) {
        combine(reduce, row(p), row(p + step), count);
      }
    }
    if constexpr (std::is_floating_point_v<T>) {
      if (reduce == CIUIC_REDUCE_AVG) {
        divide_all(row(0), count, static_cast<int>(num_parts));
      }
    }
    store(row(0), static_cast<char*>(out) + begin * width, count);
  }
}

template <typename T>
void reduce_plain(uint32_t reduce, std::span<const char* const> parts, int64_t n, void* out) {
  const auto load = [](const char* from, T* to, int64_t count) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  };
  const auto store = [](const T* from, char* to, int64_t count) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  };
  reduce_blocks<T>(reduce, parts, n, sizeof(T), out, load, store);
}

}  // namespace

void reduce_parts(ciuic_dtype dtype, uint32_t reduce, std::span<const char* const> parts,
                  int64_t num_elements, void* out) {
  char* const outs[] = {static_cast<char*>(out)};
  reduce_parts(dtype, reduce, parts, num_elements, outs);
}

void reduce_parts(ciuic_dtype dtype, uint32_t reduce, std::span<const char* const> parts,
                  int64_t num_elements, std::span<char* const> outs) {
  const bool is_average = reduce == CIUIC_REDUCE_AVG;
  if ((reduce == CIUIC_REDUCE_SUM || is_average) && has_sum_kernel(dtype, parts.size())) {
    const int divisor = is_average ? static_cast<int>(parts.size()) : 1;
    return sum_in_vectors(dtype, parts, num_elements, divisor, outs);
  }
  reduce_parts_plainly(dtype, reduce, parts, num_elements, outs[0]);
  for (char* const copy : outs.subspan(1)) {
    std::memcpy(copy, outs[0], static_cast<size_t>(num_elements * dtype_bytes(dtype)));
  }
}

void reduce_parts_plainly(ciuic_dtype dtype, uint32_t reduce, std::span<const char* const> parts,
                          int64_t num_elements, void* out) {
  if (is_narrow(dtype)) {
    const auto load = [dtype](const char* from, float* to, int64_t count) {
      widen(dtype, from, to, count);
    };
    const auto store = [dtype](const float* from, char* to, int64_t count) {
      narrow(dtype, from, to, count);
    };
    return reduce_blocks<float>(reduce, parts, num_elements, 2, out, load, store);
  }
  if (same(dtype, kF32)) {
    return reduce_plain<float>(reduce, parts, num_elements, out);
  }
  if (same(dtype, kF64)) {
    return reduce_plain<double>(reduce, parts, num_elements, out);
  }
  if (same(dtype, kI32)) {
    return reduce_plain<int32_t>(reduce, parts, num_elements, out);
  }
  if (same(dtype, kI64)) {
    return reduce_plain<int64_t>(reduce, parts, num_elements, out);
  }
  return reduce_plain<uint8_t>(reduce, parts, num_elements, out);
}

void divide_(ciuic_dtype dtype, void* data, int64_t num_elements, int divisor) {
  if (same(dtype, kF64)) {
    divide_all(static_cast<double*>(data), num_elements, divisor);
  } else {
    divide_all(static_cast<float*>(data), num_elements, divisor);
  }
}

}  // namespace ciuic::plugins
