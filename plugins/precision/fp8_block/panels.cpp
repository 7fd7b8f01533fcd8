// SPDX-License-Identifier: MIT
#include "panels.h"

#include "precision/tile_rounding.h"

namespace ciuic::plugins::fp8_block {
namespace {

constexpr int64_t kGrain = 16384;

// A panel of `depth` rows of `width` columns, q's rows from k0 and columns from n0 on.
void copy_panel(const Quantised& q, int64_t k0, int64_t n0, int64_t depth, int64_t width,
                uint8_t* codes) {
  for (int64_t k = 0; k < depth; ++k) {
    precision::encode_e4m3(width, q.row(k0 + k) + n0, codes + k * kPanelWidth);
  }
}

// The same of q^T.
void copy_transposed(const Quantised& q, int64_t k0, int64_t n0, int64_t depth, int64_t width,
                     uint8_t* codes) {
  uint8_t line[kBlock];
  for (int64_t n = 0; n < width; ++n) {
    precision::encode_e4m3(depth, q.row(n0 + n) + k0, line);
    for (int64_t k = 0; k < depth; ++k) {
      codes[k * kPanelWidth + n] = line[k];
    }
  }
}

// Of B's column n in stretch s.
float scale_at(const Quantised& q, bool transposed, int64_t s, int64_t n) {
  const int64_t row = transposed ? n : s * kBlock;
  const int64_t column = transposed ? s * kBlock : n;
  return q.scale_row(row / q.block.rows)[column / q.block.columns];
}

}  // namespace

void pack(const Quantised& q, bool transposed, const Parallel& parallel, Panels& out) {
  out.depth = transposed ? q.columns : q.rows;
  out.width = transposed ? q.rows : q.columns;
  const int64_t pieces = out.stretches() * out.panels();
  out.codes.assign(static_cast<size_t>(pieces * kBlock * kPanelWidth), 0);
  out.scales.assign(static_cast<size_t>(pieces * kPanelWidth), 0);
  parallel(pieces, kGrain / (kBlock * kPanelWidth), [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t stretch = piece / out.panels();
      const int64_t k0 = stretch * kBlock;
      const int64_t n0 = piece % out.panels() * kPanelWidth;
      const int64_t width = std::min(kPanelWidth, out.width - n0);
      uint8_t* codes = out.codes.data() + piece * kBlock * kPanelWidth;
      (transposed ? copy_transposed : copy_panel)(q, k0, n0, out.depth_of(stretch), width, codes);
      for (int64_t n = 0; n < width; ++n) {
        out.scales[static_cast<size_t>(piece * kPanelWidth + n)] =
            scale_at(q, transposed, stretch, n0 + n);
      }
    }
  });
}

}  // namespace ciuic::plugins::fp8_block
