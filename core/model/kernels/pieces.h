// SPDX-License-Identifier: MIT
#pragma once

// How a product is shared out over the threads.

#include <algorithm>
#include <cstdint>

#include <ATen/Parallel.h>

namespace ciuic::core::kernels {

inline int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

/// Whether a product of so many multiplications stays on the calling thread: below a million the
/// others are not worth waking.
inline bool is_serial_product(int64_t multiplications) {
  constexpr int64_t kSerialSize = 1 << 20;
  return multiplications < kSerialSize || at::in_parallel_region() || at::get_num_threads() == 1;
}

/// Rows of C per piece of work: whole tiles and at most `most`; fewer when there would not be two
/// pieces for each thread.
inline int64_t piece_rows(int64_t rows, int64_t panels, int64_t tile_rows, int64_t most,
                          int64_t threads) {
  const int64_t wanted_blocks = divided_up(2 * threads, panels);
  const int64_t tiles = divided_up(divided_up(rows, wanted_blocks), tile_rows);
  return threads == 1 ? most : std::clamp(tiles * tile_rows, tile_rows, most);
}

/// Calls body(begin, end) for ranges of [0, count).
template <typename Body>
void for_pieces(int64_t count, bool is_serial, const Body& body) {
  if (is_serial) {
    body(int64_t{0}, count);
  } else {
    at::parallel_for(0, count, 1, body);
  }
}

}  // namespace ciuic::core::kernels
