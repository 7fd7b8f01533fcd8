// SPDX-License-Identifier: MIT
//
// Every collective against a reference in fp64.
#pragma once

#include <cstdint>

#include "loaded_plugin.h"

namespace ciuic::tests {

/// All operations x types x reductions x counts x in place or not. Returns a hash over all result
/// bits that are equal on all ranks. Throws std::runtime_error with the first difference.
[[nodiscard]] uint64_t check_numbers(const Communicator& communicator);

/// Inputs with NaN and infinities.
void check_special_values(const Communicator& communicator);

}  // namespace ciuic::tests
