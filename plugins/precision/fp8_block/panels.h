// SPDX-License-Identifier: MIT
//
// The right operand of a product, B [depth, width], ready for the kernel: E4M3 codes in panels of 32
// columns, stretch by stretch of 128 in depth, and a scale for each column of each stretch. One byte
// a number, so that casts of weights can be kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "quantise.h"

namespace ciuic::plugins::fp8_block {

constexpr int64_t kPanelWidth = 32;

struct Panels {
  int64_t depth = 0, width = 0;
  std::vector<uint8_t> codes;  // [stretches][panels][128][32]; zeros beyond the edges
  std::vector<float> scales;   // [stretches][panels * 32]

  [[nodiscard]] int64_t stretches() const { return (depth + kBlock - 1) / kBlock; }
  [[nodiscard]] int64_t panels() const { return (width + kPanelWidth - 1) / kPanelWidth; }
  [[nodiscard]] int64_t depth_of(int64_t stretch) const {
    return std::min(kBlock, depth - stretch * kBlock);
  }
  [[nodiscard]] const uint8_t* panel(int64_t stretch, int64_t index) const {
    return codes.data() + (stretch * panels() + index) * kBlock * kPanelWidth;
  }
  [[nodiscard]] const float* scale(int64_t stretch, int64_t index) const {
    return scales.data() + (stretch * panels() + index) * kPanelWidth;
  }
};

/// `transposed`: q is B^T, as a weight is in the forward.
void pack(const Quantised& q, bool transposed, const Parallel& parallel, Panels& out);

}  // namespace ciuic::plugins::fp8_block
