// SPDX-License-Identifier: MIT
//
// What this binary is made of, by name and version.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ciuic::core {

/// ("ciuic", "0.1.0"), ("plugin ABI", "0.1"), ("LibTorch", "2.11.0"), ...
const std::vector<std::pair<std::string, std::string>>& versions();

}  // namespace ciuic::core
