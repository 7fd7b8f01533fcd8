// SPDX-License-Identifier: MIT
//
// Sends and receives. Those of one submit begin together, in whatever order they stand there, so
// that ranks that exchange messages cannot block each other. Between two ranks, messages with the
// same tag keep their order; different tags are independent.
//
// A message to oneself is a copy: its send and its receive must stand in the same submit.
#pragma once

#include <vector>

#include "communicator/request.h"
#include "operation.h"

namespace ciuic::plugins::gloo {

/// The sends and receives of one submit as operations: one for each deadline among them. Throws
/// INVALID for messages to oneself that have no partner, or another size or type than it.
[[nodiscard]] std::vector<Operation> plan_messages(const std::vector<Request>& requests);

}  // namespace ciuic::plugins::gloo
