// SPDX-License-Identifier: MIT
//
// The numbers that ranks put into a case, and what must come out: computed wide, from all ranks'
// inputs, with the error that the contract leaves to a plugin.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cases.hpp"

namespace ciuic::testing::communicator {

/// The bytes of a rank's input (of a broadcast: of the root's buffer). Any bits where bytes are
/// moved; numbers that the type holds exactly where they are reduced.
std::vector<char> input_of(const Case& c, int rank, int world);

/// Compares an output with what must have come out; nothing, or the first difference. Elements that
/// no piece covers must still have the fill byte.
std::optional<std::string> find_difference(const Case& c, int rank, int world, const char* out,
                                           unsigned char fill);

}  // namespace ciuic::testing::communicator
