// SPDX-License-Identifier: MIT
//
// What texts of a plugin must look like.
#pragma once

#include <string_view>

namespace ciuic::testing {

/// Well-formed UTF-8: shortest forms, no surrogates, up to U+10FFFF.
bool is_utf8(std::string_view text);

/// a-z, 0-9 and _, beginning with a letter.
bool is_snake_case(std::string_view text);

/// MAJOR.MINOR.PATCH without leading zeros, then perhaps -pre.release and +build (semver.org).
bool is_semantic_version(std::string_view text);

}  // namespace ciuic::testing
