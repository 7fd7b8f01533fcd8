// SPDX-License-Identifier: MIT
#include "core/train/slots.h"

#include <bit>
#include <numeric>
#include <string>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

/// 0 .. count - 1 as the tree's leaves stand: all even ones before all odd ones, each half likewise.
std::vector<uint32_t> leaves(uint32_t count) {
  if (count <= 1) {
    return std::vector<uint32_t>(count, 0);
  }
  std::vector<uint32_t> out;
  for (const uint32_t even : leaves((count + 1) / 2)) {
    out.push_back(2 * even);
  }
  for (const uint32_t odd : leaves(count / 2)) {
    out.push_back(2 * odd + 1);
  }
  return out;
}

}  // namespace

StepSlots::StepSlots(bool any_world, uint32_t micro_batches, int rank, int world)
    : order_(micro_batches),
      first_(micro_batches * static_cast<uint32_t>(rank)),
      count_(micro_batches * static_cast<uint32_t>(world)) {
  std::iota(order_.begin(), order_.end(), 0U);
  if (!any_world) {
    return;
  }
  const auto ranks = static_cast<uint32_t>(world);
  if (!std::has_single_bit(ranks)) {
    throw Failure(ExitCode::Usage,
                  "run.reproducible = \"any_world\" needs a power of two of ranks, got " +
                      std::to_string(world),
                  "start 1, 2, 4, 8, ... ranks");
  }
  order_ = leaves(micro_batches);
  const std::vector<uint32_t> ranks_in_order = leaves(ranks);
  for (uint32_t at = 0; at < ranks; ++at) {
    if (ranks_in_order[at] == static_cast<uint32_t>(rank)) {
      first_ = at * micro_batches;
    }
  }
}

SlotSums::SlotSums(bool any_world, const StepSlots& slots)
    : values_(kKinds * (any_world ? slots.count() : 1), 0.0),
      is_apart_(any_world),
      first_(any_world ? slots.first() : 0) {}

void SlotSums::add(uint32_t index, const Values& values) {
  const size_t at = kKinds * (first_ + (is_apart_ ? index : 0));
  for (size_t k = 0; k < kKinds; ++k) {
    values_[at + k] += values[k];
  }
}

SlotSums::Values SlotSums::total() const {
  Values sums{};
  for (size_t i = 0; i < values_.size(); ++i) {
    sums[i % kKinds] += values_[i];
  }
  return sums;
}

}  // namespace ciuic::core
