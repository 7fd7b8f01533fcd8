// SPDX-License-Identifier: MIT
//
// What is worth saying about a library's file but is no fault.
#pragma once

#include <string>
#include <vector>

namespace ciuic::testing {

/// Nothing for a file that cannot be read: a test says so.
std::vector<std::string> advice_on(const std::string& path);

}  // namespace ciuic::testing
