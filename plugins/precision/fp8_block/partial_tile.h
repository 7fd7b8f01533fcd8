// SPDX-License-Identifier: MIT
//
// The inner sums of a block product: a tile of at most 14 rows and 32 columns over one stretch of at
// most 128 in depth, in fp32, in order of depth.
//
// Products of two E4M3 numbers have 8 significant bits and are exact, so that a fused multiply-add
// and a product followed by an addition give the same bits: any processor may use what it has.
#pragma once

#include <cstdint>

namespace ciuic::plugins::fp8_block {

constexpr int64_t kTileRows = 14;

/// sums[r][c] = sum over k of a[r * row_stride + k * column_stride] * panel[k][c], k in order.
/// panel: [depth][32], aligned to 64 bytes, as is `sums`, [rows][32].
void partial_tile(const float* a, int64_t row_stride, int64_t column_stride, const float* panel,
                  int64_t rows, int64_t depth, float* sums);

}  // namespace ciuic::plugins::fp8_block
