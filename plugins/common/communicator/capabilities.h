// SPDX-License-Identifier: MIT
//
// What a communicator in host memory that does every operation and reduction can do, as data.
#pragma once

#include <cstdint>

#include <ciuic/abi/communicator.h>

namespace ciuic::plugins {

/// CIUIC_COMM_ bits. `reduce` counts for operations that reduce, the type for all but the barrier.
[[nodiscard]] uint64_t capability_bits(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                       ciuic_device device);

/// True for f16 and bf16, whose sums are kept in fp32.
[[nodiscard]] bool is_narrow(ciuic_dtype dtype);
[[nodiscard]] bool is_float(ciuic_dtype dtype);

[[nodiscard]] const char* op_name(uint32_t op);
/// All-reduce, reduce, reduce-scatter.
[[nodiscard]] bool reduces(uint32_t op);
/// Has a root, a group rank.
[[nodiscard]] bool has_root(uint32_t op);
/// Send, receive.
[[nodiscard]] bool is_message(uint32_t op);

}  // namespace ciuic::plugins
