// SPDX-License-Identifier: MIT
//
// The kernels under reduction.h, in vectors: sums of floats straight from the memory of all ranks, in
// one pass. The same bits on every vector unit, and those of the plain way.
#pragma once

#include <cstdint>
#include <span>

#include <ciuic/abi/communicator.h>

namespace ciuic::plugins {

/// As many as stay in registers.
constexpr size_t kMostPartsInVectors = 8;

/// f32, f16 and bf16 have kernels.
[[nodiscard]] bool has_sum_kernel(ciuic_dtype dtype, size_t num_parts);

/// outs[0][i] = (((0 + 1) + (2 + 3)) + ...) / divisor, in fp32, rounded once; the other outs are
/// copies of it. An out may be one of the parts.
void sum_in_vectors(ciuic_dtype dtype, std::span<const char* const> parts, int64_t num_elements,
                    int divisor, std::span<char* const> outs);

/// Between 16-bit floats and fp32; narrow rounds to nearest even.
void widen(ciuic_dtype dtype, const void* in, float* out, int64_t num_elements);
void narrow(ciuic_dtype dtype, const float* in, void* out, int64_t num_elements);

}  // namespace ciuic::plugins
