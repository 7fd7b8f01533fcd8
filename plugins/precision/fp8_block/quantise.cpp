// SPDX-License-Identifier: MIT
#include "quantise.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include <ciuic/error.hpp>

#include "precision/tile_rounding.h"

namespace ciuic::plugins::fp8_block {
namespace {

constexpr float kLargestE4m3 = 448.0F;
constexpr float kLargestE5m6 = 65024.0F;
constexpr int64_t kGrain = 16384;  // elements for a thread

// 1 x 128, in place. In E5M6 scales are powers of two: it is the format of what is cast again.
void store(int64_t count, Stored stored, ScaleRule rule, float* x) {
  for (int64_t c = 0; c < count && stored != Stored::Exact; c += kBlock) {
    const int64_t width = std::min(kBlock, count - c);
    const uint32_t largest = precision::largest_bits(width, x + c);
    if (stored == Stored::E5m6) {
      precision::through_e5m6(width, scale_of(largest, ScaleRule::PowerOfTwo, kLargestE5m6), x + c);
    } else {
      precision::through_e4m3(width, scale_of(largest, rule, kLargestE4m3), x + c);
    }
  }
}

// One row of blocks. `largest`: a word for each block.
void quantise_block_row(Quantised& q, int64_t block_row, ScaleRule rule, uint32_t* largest) {
  const int64_t begin = block_row * q.block.rows;
  const int64_t end = std::min(begin + q.block.rows, q.rows);
  const int64_t across = q.blocks_across();
  std::fill_n(largest, across, 0U);
  for (int64_t r = begin; r < end; ++r) {
    if (q.block.columns == 1) {
      precision::raise_to_largest(q.columns, q.row(r), largest);
      continue;
    }
    for (int64_t b = 0; b < across; ++b) {
      const int64_t width = std::min(kBlock, q.columns - b * kBlock);
      largest[b] = std::max(largest[b], precision::largest_bits(width, q.row(r) + b * kBlock));
    }
  }
  float* scales = q.scales.data() + block_row * across;
  for (int64_t b = 0; b < across; ++b) {
    scales[b] = scale_of(largest[b], rule, kLargestE4m3);
  }
  for (int64_t r = begin; r < end; ++r) {
    if (q.block.columns == 1) {
      precision::round_to_e4m3(q.columns, scales, q.row(r));
      continue;
    }
    for (int64_t b = 0; b < across; ++b) {
      const int64_t width = std::min(kBlock, q.columns - b * kBlock);
      precision::round_to_e4m3(width, scales[b], q.row(r) + b * kBlock);
    }
  }
}

void set_shape(Quantised& q, int64_t rows, int64_t columns, BlockShape block) {
  q.rows = rows;
  q.columns = columns;
  q.block = block;
  q.numbers.resize(static_cast<size_t>(rows * columns));
  q.scales.resize(static_cast<size_t>(q.blocks_down() * q.blocks_across()));
}

}  // namespace

float scale_of(uint32_t largest_bits, ScaleRule rule, float largest_number) {
  const auto largest = std::bit_cast<float>(largest_bits);
  if (!(largest <= std::numeric_limits<float>::max())) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (largest == 0) {
    return 1;
  }
  // Never subnormal, where a scale would have no bits left.
  const float scale = std::max(largest / largest_number, std::numeric_limits<float>::min());
  if (rule == ScaleRule::Exact) {
    return scale;
  }
  constexpr uint32_t kMantissa = 0x7FFFFF;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(scale) + kMantissa) & ~kMantissa);
}

void quantise(const Matrix& in, BlockShape block, ScaleRule rule, Stored stored,
              const Parallel& parallel, Quantised& out) {
  set_shape(out, in.rows, in.columns, block);
  const int64_t block_elements = std::max<int64_t>(1, block.rows * in.columns);
  parallel(out.blocks_down(), std::max<int64_t>(1, kGrain / block_elements),
           [&](int64_t begin, int64_t end) {
             std::vector<uint32_t> largest(static_cast<size_t>(out.blocks_across()));
             for (int64_t b = begin; b < end; ++b) {
               const int64_t last = std::min((b + 1) * block.rows, in.rows);
               for (int64_t r = b * block.rows; r < last; ++r) {
                 in.read(r, out.row(r));
                 store(in.columns, stored, rule, out.row(r));
               }
               quantise_block_row(out, b, rule, largest.data());
             }
           });
}

void take_cast(const Matrix& codes, const ciuic_tensor& scales, BlockShape block, Quantised& out) {
  set_shape(out, codes.rows, codes.columns, block);
  const auto* given = elements<float>(scales);
  if (num_elements(scales) != static_cast<int64_t>(out.scales.size())) {
    throw Error(CIUIC_INVALID, "got " + std::to_string(num_elements(scales)) +
                                   " scales, expected " + std::to_string(out.scales.size()) +
                                   " as format says");
  }
  std::copy_n(given, out.scales.size(), out.scales.data());
  for (int64_t r = 0; r < codes.rows; ++r) {
    codes.read(r, out.row(r));
  }
}

}  // namespace ciuic::plugins::fp8_block
