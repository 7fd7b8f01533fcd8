// SPDX-License-Identifier: MIT
//
// Operations that only move parts may get an output that overlaps their input.
#pragma once

#include <ciuic/host.hpp>

#include "communicator/request.h"

namespace ciuic::plugins {

/// Does what arrives lie where something else is still to be read? In place it does not: there, the
/// own part alone stays where it is.
[[nodiscard]] bool arrives_in_input(const Request& r);

/// A copy of the input, part after part, which the request then reads in its stead.
[[nodiscard]] Buffer set_input_aside(Request& r, const Host& host);

}  // namespace ciuic::plugins
