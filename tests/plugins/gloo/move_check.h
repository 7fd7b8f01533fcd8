// SPDX-License-Identifier: MIT
//
// Every operation that moves parts, byte by byte: even, with counts, with counts and offsets.
#pragma once

#include "loaded_plugin.h"

namespace ciuic::tests {

/// All-gather, gather, scatter, all-to-all and reduce-scatter x types x sizes x layouts x in place
/// or not. Throws std::runtime_error with the first difference.
void check_moves(const Communicator& communicator);

}  // namespace ciuic::tests
