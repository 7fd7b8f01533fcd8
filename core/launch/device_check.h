// SPDX-License-Identifier: MIT
//
// Is the device of run.device there?
#pragma once

#include <string>

namespace ciuic::core {

/// Throws Failure (Environment) when it is not, or cannot be used by this version.
void check_device(const std::string& device);

}  // namespace ciuic::core
