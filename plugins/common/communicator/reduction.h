// SPDX-License-Identifier: MIT
//
// Arithmetic on values of all ranks as the contract asks for it: sums in a fixed tree, true averages,
// minima and maxima that propagate NaN, 16-bit floats summed in fp32 and rounded once, bitwise OR and
// AND. Pure functions of memory. What most bytes go through has kernels of its own (sum_parts.h).
#pragma once

#include <cstdint>
#include <span>

#include <ciuic/abi/communicator.h>

namespace ciuic::plugins {

/// out[i] = the reduction over p of parts[p][i], as ((0 + 1) + (2 + 3)) + ... `reduce` is one of
/// SUM, AVG (floats only), MIN, MAX, PROD, OR, AND (integers only). `out` may be one of the parts;
/// otherwise it does not overlap them.
void reduce_parts(ciuic_dtype dtype, uint32_t reduce, std::span<const char* const> parts,
                  int64_t num_elements, void* out);
/// The same, with copies of the result in all `outs`, of which there is at least one.
void reduce_parts(ciuic_dtype dtype, uint32_t reduce, std::span<const char* const> parts,
                  int64_t num_elements, std::span<char* const> outs);
/// Without kernels: what those are tested against.
void reduce_parts_plainly(ciuic_dtype dtype, uint32_t reduce, std::span<const char* const> parts,
                          int64_t num_elements, void* out);

/// data[i] /= divisor, for f32 and f64.
void divide_(ciuic_dtype dtype, void* data, int64_t num_elements, int divisor);

}  // namespace ciuic::plugins
