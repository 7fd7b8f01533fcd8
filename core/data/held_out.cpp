// SPDX-License-Identifier: MIT
#include "core/data/held_out.h"

#include <algorithm>
#include <cmath>

namespace ciuic::core {

int64_t held_out_rows(int64_t rows, double fraction) {
  if (rows == 0 || fraction <= 0) {
    return 0;
  }
  const auto nearest = static_cast<int64_t>(std::llround(static_cast<double>(rows) * fraction));
  return std::clamp<int64_t>(nearest, 1, rows);
}

std::vector<int64_t> spread_rows(int64_t first, int64_t count, int64_t sequences) {
  const int64_t chosen = std::min(sequences, count);
  std::vector<int64_t> rows(static_cast<size_t>(std::max<int64_t>(0, chosen)));
  // The products may pass 2^63 for a corpus of 2^40 rows.
  for (int64_t i = 0; i < chosen; ++i) {
    rows[static_cast<size_t>(i)] =
        first + static_cast<int64_t>(static_cast<__int128>(i) * count / chosen);
  }
  return rows;
}

}  // namespace ciuic::core
