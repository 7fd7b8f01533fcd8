// SPDX-License-Identifier: MIT
//
// Sends and receives: orders, tags, groups, many at a time, to oneself.
#pragma once

#include "loaded_plugin.h"

namespace ciuic::tests {

/// Throws std::runtime_error with what is not as it should be.
void check_messages(const Communicator& communicator);

}  // namespace ciuic::tests
