// SPDX-License-Identifier: MIT
//
// What a norm is made of, for gradients in host memory: bound by memory, not by arithmetic.
#pragma once

#include <cstdint>

namespace ciuic::core {

/// out[0] += sum of squares, out[1] += number of elements that are not finite. In double over fixed
/// lanes, so that the bits depend on nothing but the values: neither on the machine's vector units.
void add_statistics(const float* x, int64_t count, double* out);

}  // namespace ciuic::core
