// SPDX-License-Identifier: MIT
//
// Which rows are trained on, and which are kept for validation. Pure functions of counts.
#pragma once

#include <cstdint>
#include <vector>

namespace ciuic::core {

/// Rows held out at the end of `rows`: fraction * rows to the nearest whole (halves up), and at
/// least one if fraction > 0.
int64_t held_out_rows(int64_t rows, double fraction);

/// min(sequences, count) of the rows [first, first + count), evenly spaced from the first: always
/// the same ones.
std::vector<int64_t> spread_rows(int64_t first, int64_t count, int64_t sequences);

}  // namespace ciuic::core
