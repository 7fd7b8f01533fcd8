// SPDX-License-Identifier: MIT
//
// Reductions over ranks, element by element: 16-bit floats and f32 in f32, rounded once; f64 in
// f64; integers in 64 bits.
#pragma once

#include <vector>

#include "request.h"

namespace ciuic::mutants {

/// One element on its way: which member counts follows from the dtype.
struct Number {
  double f = 0;
  int64_t i = 0;
};

Number load(ciuic_dtype dtype, const char* at);
void store(ciuic_dtype dtype, char* at, Number value);
bool is_float(ciuic_dtype dtype);
Number combine(ciuic_dtype dtype, uint32_t reduce, Number a, Number b);

/// All ranks' element `at` bytes into their inputs; summed as listed, or as a tree.
Number reduce_element(const Request& r, const std::vector<const char*>& inputs, int64_t at);

}  // namespace ciuic::mutants
