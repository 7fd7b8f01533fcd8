// SPDX-License-Identifier: MIT
//
// Collectives of the contract as operations of Gloo. All formulas about who sends what are here:
//
//   all-reduce      Large: Gloo's ring, in place; 16-bit floats travel as fp32, float MIN and MAX
//                   as integer keys. Small: everybody gets everything. What the ring cannot do
//                   (TREE, OR, AND), when large: a reduce-scatter and then an all-gather.
//   reduce, reduce-scatter
//                   The parts go to their owner, who reduces.
//   broadcast, barrier
//                   Gloo's.
//   all others      Each part goes from its place at the sender to its place at the receiver.
//
// All but the ring reduce in tree order: ((0 + 1) + (2 + 3)) + ...
#pragma once

#include <ciuic/host.hpp>

#include "communicator/request.h"
#include "operation.h"

namespace ciuic::plugins::gloo {

/// `request` is no message. What does not need a peer is left to the operation's `finish`.
[[nodiscard]] Operation plan_collective(const Request& request, const Host& host);

/// What both ends must agree on, but for sizes.
[[nodiscard]] uint32_t signature_of(const Request& request);

}  // namespace ciuic::plugins::gloo
