// SPDX-License-Identifier: MIT
//
// Does a text parse? RFC 8259 (JSON) and RFC 4180 (CSV), strictly, keeping nothing.
#pragma once

#include <string_view>

namespace ciuic::testing::profiler {

/// One value with nothing behind it.
[[nodiscard]] bool is_json(std::string_view text);
/// Rows of equally many columns; the number of rows, or -1.
[[nodiscard]] long csv_rows(std::string_view text);

}  // namespace ciuic::testing::profiler
