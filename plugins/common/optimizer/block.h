// SPDX-License-Identifier: MIT
//
// The unit of an update: so few elements that their operands stay in the first-level cache while
// they are widened, updated and rounded. Memory is read once and written once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ciuic::plugins::optimizer {

constexpr int64_t kBlockElements = 1024;
constexpr size_t kMostStates = 2;

/// At most kBlockElements elements in fp32; grad is not scaled yet. A rule is element-wise, so any
/// split of an array into blocks gives the same bits.
struct Block {
  int64_t begin;  // of its first element in the update's range
  int64_t count;
  const float* grad;
  float* value;
  std::array<float*, kMostStates> state;
};

}  // namespace ciuic::plugins::optimizer
