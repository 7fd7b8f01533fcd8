// SPDX-License-Identifier: MIT
//
// "did you mean": the candidate that the fewest edits turn a word into.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ciuic::core {

/// Levenshtein's distance, with a swap of neighbours as one edit.
size_t edit_distance(std::string_view a, std::string_view b);

/// The fewest edits of `name` that a pattern then matches: what * stands for costs nothing.
size_t pattern_distance(std::string_view pattern, std::string_view name);

/// The nearest candidate, or "" when none is close: at most a third of the word may differ, or
/// two letters, or one of a word of three.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// "; did you mean X?" or "".
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace ciuic::core
