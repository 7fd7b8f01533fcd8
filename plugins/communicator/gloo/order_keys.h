// SPDX-License-Identifier: MIT
//
// Floats as integers of the same order, so that Gloo's integer minima and maxima propagate NaN.
#pragma once

#include <cstdint>

#include <ciuic/abi/communicator.h>

namespace ciuic::plugins::gloo {

/// Turns f32 (f64) into i32 (i64) of the same order, and back, in the same memory. NaN comes last
/// for a maximum, first for a minimum, so that integer MAX and MIN propagate it.
void to_order_keys_(ciuic_dtype dtype, uint32_t reduce, void* data, int64_t num_elements);
void from_order_keys_(ciuic_dtype dtype, void* data, int64_t num_elements);

}  // namespace ciuic::plugins::gloo
