// SPDX-License-Identifier: MIT
//
// What needs no peer: messages to oneself, and every collective of a group of one. They are copies,
// done at once.
#pragma once

#include <vector>

#include "communicator/request.h"

namespace ciuic::plugins {

/// Copies what a rank sends itself: the k-th send with a tag to the k-th receive with it. Throws
/// INVALID for one without a partner, or of another size or type than it.
void copy_to_self(const std::vector<Request>& messages);

/// Does what needs no peer, of one submit; returns the rest.
[[nodiscard]] std::vector<Request> deliver_to_self(std::vector<Request> requests);

}  // namespace ciuic::plugins
