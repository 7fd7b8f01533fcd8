// SPDX-License-Identifier: MIT
//
// Arithmetic on values of all ranks that Gloo does not do, or does not do as the contract asks:
// sums in a fixed tree, true averages, minima and maxima that propagate NaN, 16-bit floats summed
// in fp32 and rounded once, bitwise OR and AND. Pure functions of memory.
#pragma once

#include <cstdint>
#include <span>

#include <ciuic/abi/communicator.h>

namespace ciuic::plugins::gloo {

/// True for f16 and bf16, whose sums are kept in fp32.
[[nodiscard]] bool is_narrow(ciuic_dtype dtype);
[[nodiscard]] bool is_float(ciuic_dtype dtype);

/// out[i] = the reduction over p of parts[p][i], as ((0 + 1) + (2 + 3)) + ... `reduce` is one of
/// SUM, AVG (floats only), MIN, MAX, PROD, OR, AND (integers only). `out` may be one of the parts;
/// otherwise it does not overlap them.
void reduce_parts(ciuic_dtype dtype, uint32_t reduce, std::span<const char* const> parts,
                  int64_t num_elements, void* out);

/// data[i] /= divisor, for f32 and f64.
void divide_(ciuic_dtype dtype, void* data, int64_t num_elements, int divisor);

/// Turns f32 (f64) into i32 (i64) of the same order, and back, in the same memory. NaN comes last
/// for a maximum, first for a minimum, so that integer MAX and MIN propagate it.
void to_order_keys_(ciuic_dtype dtype, uint32_t reduce, void* data, int64_t num_elements);
void from_order_keys_(ciuic_dtype dtype, void* data, int64_t num_elements);

/// Between 16-bit floats and fp32; narrow rounds to nearest even.
void widen(ciuic_dtype dtype, const void* in, float* out, int64_t num_elements);
void narrow(ciuic_dtype dtype, const float* in, void* out, int64_t num_elements);

}  // namespace ciuic::plugins::gloo
