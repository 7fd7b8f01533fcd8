// SPDX-License-Identifier: MIT
//
// How the ranks of a group come to share memory: they introduce themselves through the kv service, the
// first one makes the memory, the others open it, and all hear whether everybody could: either all
// ranks have a group or all have the same error.
#pragma once

#include <chrono>

#include "communicator/membership.h"
#include "engine.h"

namespace ciuic::plugins::shm {

/// The group has two ranks or more. Throws UNIMPLEMENTED when the ranks cannot share memory, with the
/// reason; DEADLINE naming who is missing.
[[nodiscard]] Team connect(const Membership& group, std::chrono::nanoseconds timeout);

}  // namespace ciuic::plugins::shm
