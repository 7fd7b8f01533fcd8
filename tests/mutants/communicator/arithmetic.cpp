// SPDX-License-Identifier: MIT
#include "arithmetic.h"

#include <cmath>

#include <ciuic/testing/float16.hpp>
#include <ciuic/testing/numbers.hpp>

namespace ciuic::mutants {
namespace {

/// As the type that sums are kept in would round it.
double rounded(ciuic_dtype dtype, double value) {
  return same(dtype, kF64) ? value : static_cast<double>(static_cast<float>(value));
}

double combine_floats(uint32_t reduce, double a, double b) {
  switch (reduce) {
    case CIUIC_REDUCE_MIN:
      return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b);
    case CIUIC_REDUCE_MAX:
      return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b);
    case CIUIC_REDUCE_PROD:
      return a * b;
    default:
      return a + b;
  }
}

int64_t combine_integers(uint32_t reduce, int64_t a, int64_t b) {
  switch (reduce) {
    case CIUIC_REDUCE_MIN:
      return a < b ? a : b;
    case CIUIC_REDUCE_MAX:
      return a > b ? a : b;
    case CIUIC_REDUCE_PROD:
      return a * b;
    case CIUIC_REDUCE_OR:
      return a | b;
    case CIUIC_REDUCE_AND:
      return a & b;
    default:
      return a + b;
  }
}

}  // namespace

bool is_float(ciuic_dtype dtype) {
  return dtype.code == CIUIC_DTYPE_FLOAT || dtype.code == CIUIC_DTYPE_BFLOAT;
}

Number load(ciuic_dtype dtype, const char* at) {
  if (same(dtype, kF16)) {
    return {testing::f16_to_float(testing::read_as<uint16_t>(at)), 0};
  }
  if (same(dtype, kI64)) {
    return {0, testing::read_as<int64_t>(at)};
  }
  const double value = testing::load_element(dtype, at);
  return is_float(dtype) ? Number{value, 0} : Number{0, static_cast<int64_t>(value)};
}

void store(ciuic_dtype dtype, char* at, Number value) {
  if (same(dtype, kF16)) {
    testing::write_as(at, testing::float_to_f16(static_cast<float>(value.f)));
  } else if (same(dtype, kI64)) {
    testing::write_as(at, value.i);
  } else {
    testing::store_element(dtype, at, is_float(dtype) ? value.f : static_cast<double>(value.i));
  }
}

Number combine(ciuic_dtype dtype, uint32_t reduce, Number a, Number b) {
  return {rounded(dtype, combine_floats(reduce, a.f, b.f)), combine_integers(reduce, a.i, b.i)};
}

Number reduce_element(const Request& r, const std::vector<const char*>& inputs, int64_t at) {
  std::vector<Number> x;
  for (const char* input : inputs) {
    x.push_back(load(r.dtype, input + at));
    if (r.factor != 1) {
      x.back().f = rounded(r.dtype, x.back().f * r.factor);
    }
  }
  if ((r.flags & CIUIC_COLLECTIVE_TREE) != 0) {
    for (size_t step = 1; step < x.size(); step *= 2) {
      for (size_t i = 0; i + step < x.size(); i += 2 * step) {
        x[i] = combine(r.dtype, r.reduce, x[i], x[i + step]);
      }
    }
  } else {
    for (size_t i = 1; i < x.size(); ++i) {
      x[0] = combine(r.dtype, r.reduce, x[0], x[i]);
    }
  }
  if (r.reduce == CIUIC_REDUCE_AVG) {
    x[0].f = rounded(r.dtype, x[0].f / static_cast<double>(x.size()));
  }
  return x[0];
}

}  // namespace ciuic::mutants
