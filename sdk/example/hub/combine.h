// SPDX-License-Identifier: MIT
//
// The arithmetic of the hub: one collective as a function of every rank's input. Free of sockets,
// so it can be tested without ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ciuic/abi/communicator.h>

namespace hub {

using Bytes = std::vector<char>;

/// Can it add, compare, ... this type? AVG is for f32 alone: sums in double are rounded once.
bool can_reduce(uint32_t reduce, ciuic_dtype dtype);

/// acc = acc (reduce) in, element by element; for AVG the last step divides by the number of ranks.
/// All inputs are of one size.
Bytes reduce_all(uint32_t reduce, ciuic_dtype dtype, const std::vector<Bytes>& inputs);

}  // namespace hub
