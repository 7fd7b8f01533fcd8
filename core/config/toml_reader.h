// SPDX-License-Identifier: MIT
//
// TOML text to a tree of Nodes. The only file that knows toml++ is this one's source.
//
// Hostile input ends in a Problem, never in a crash: size and nesting are limited before the parser
// sees the text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/node.h"
#include "core/config/problem.h"

namespace ciuic::core {

inline constexpr size_t kMaxConfigBytes = size_t{4} << 20;
inline constexpr int kMaxConfigDepth = 32;

/// The root table of `text`. A syntax error is one Problem with line and column, and the root is
/// empty; duplicate keys are each a Problem, and the first of each stays.
Node parse_toml(std::string_view text, const std::string& file, std::vector<Problem>& problems);

/// The same for a file. Unreadable: one Problem.
Node read_toml(const std::string& path, std::vector<Problem>& problems);

/// Applies `a.b=value` in order: the value is TOML, or else a bare string. Later ones win.
void apply_overrides(Node& root, std::span<const std::string> overrides,
                     std::vector<Problem>& problems);

}  // namespace ciuic::core
