// SPDX-License-Identifier: MIT
//
// The file of this program: what belongs to it lies beside it.
#pragma once

#include <filesystem>

namespace ciuic::core {

/// Throws Failure (Environment) where /proc is not there to ask.
[[nodiscard]] std::filesystem::path own_program();

}  // namespace ciuic::core
