// SPDX-License-Identifier: MIT
//
// Collectives of the contract as operations of Gloo. All formulas about who sends what are here:
//
//   all-reduce      large: Gloo's ring, in place; 16-bit floats travel as fp32, float MIN and MAX
//                   as integer keys. Small, or TREE: everybody gets everything, and reduces in tree
//                   order.
//   reduce-scatter  an exchange of parts, reduced locally in tree order: half of what Gloo's own
//                   (an all-reduce) sends.
//   all-gather      small: an exchange; large: one broadcast from each rank, without copies.
//   broadcast, barrier  Gloo's.
#pragma once

#include <ciuic/abi/communicator.h>
#include <ciuic/host.hpp>

#include "session.h"

namespace ciuic::plugins::gloo {

/// CIUIC_COMM_ bits.
[[nodiscard]] uint64_t capability_bits(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                       ciuic_device device);

/// Checks the request and makes it an operation. Throws UNIMPLEMENTED for what capability_bits
/// denies, INVALID for sizes, types and ranks that contradict each other. `name` begins its
/// messages.
[[nodiscard]] Operation plan(const ciuic_collective& request, const Host& host, int rank, int world,
                             std::chrono::nanoseconds default_timeout);

}  // namespace ciuic::plugins::gloo
