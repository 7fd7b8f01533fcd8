// SPDX-License-Identifier: MIT
//
// StepSlots: the micro-batches of all ranks in one step, and the order in which what they give is summed.
//
// By default each rank sums its own micro-batches as they come, and ranks are summed after that: the
// same bits in every run of one world size. With run.reproducible = "any_world" all slots are leaves
// of one binary tree that no world size changes. Micro-batch m of rank r holds the samples of global
// micro-batch g = m * world + r; the tree sums those of even g and those of odd g, and each half in
// the same way. With a power of two of ranks, each rank's slots are one subtree, whose leaves stand
// side by side when the tree is drawn without crossings: there a slot has its position, first_slot
// is the rank's first, and a node of n leaves has ceil(n / 2) of them on its left.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace ciuic::core {

class StepSlots {
 public:
  /// `any_world` needs a power of two of ranks. Throws Failure (Usage).
  StepSlots(bool any_world, uint32_t micro_batches, int rank, int world);

  [[nodiscard]] uint32_t first() const { return first_; }
  [[nodiscard]] uint32_t count() const { return count_; }
  /// This rank's micro-batches in the order of their positions.
  [[nodiscard]] const std::vector<uint32_t>& order() const { return order_; }

 private:
  std::vector<uint32_t> order_;
  uint32_t first_;
  uint32_t count_;
};

/// Sums over tokens that each slot brings, added up over all slots: one number for each kind, or with
/// any_world one for each kind and slot until all are here, then summed in the order of positions.
class SlotSums {
 public:
  static constexpr size_t kKinds = 6;
  using Values = std::array<double, kKinds>;

  SlotSums() = default;
  SlotSums(bool any_world, const StepSlots& slots);

  /// Of the micro-batch at place `index` of StepSlots::order().
  void add(uint32_t index, const Values& values);
  /// To be summed over the ranks, element by element.
  [[nodiscard]] std::span<double> values() { return values_; }
  [[nodiscard]] Values total() const;

 private:
  std::vector<double> values_ = std::vector<double>(kKinds, 0.0);
  bool is_apart_ = false;
  uint32_t first_ = 0;
};

}  // namespace ciuic::core
