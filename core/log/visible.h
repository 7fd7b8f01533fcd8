// SPDX-License-Identifier: MIT
//
// Text of others (plugins, files, names in a configuration) on a person's terminal: what would move
// the cursor, colour the screen or answer for the keyboard is shown instead of obeyed.
#pragma once

#include <string>
#include <string_view>

namespace ciuic::core {

enum class Newlines { Shown, Kept };

/// Control characters (C0 but the tab, DEL, C1) and bytes that are no UTF-8, as \n, \r or \x1b; the
/// rest as it is.
std::string visible(std::string_view text, Newlines newlines = Newlines::Shown);

}  // namespace ciuic::core
