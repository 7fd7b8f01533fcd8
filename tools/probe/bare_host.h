// SPDX-License-Identifier: MIT
//
// The host that a plugin's validate() sees: statuses and nothing else. No memory, no services: it
// may have no effects.
#pragma once

#include <string>

#include <ciuic/abi/host.h>

namespace ciuic::tools {

const ciuic_host* bare_host();

/// The message of a status of this host, which is freed.
std::string take_message(ciuic_status* status);

}  // namespace ciuic::tools
