// SPDX-License-Identifier: MIT
//
// Sums for reproducible = "any_world": gradients of slots are added in the order of one balanced
// binary tree (ciuic/sharding/slot_tree.hpp), wherever the slots are. A rank's own slots make one
// subtree, added as they come with a stack of buffers; the ranks' subtrees are added here too, part
// by part, so the communicator only moves bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "sharding/flat.h"
#include "sharding/layout.h"
#include "sharding/transport.h"

namespace ciuic::plugins::stages {

/// Where a step's slots are. Equal on all ranks but for the position.
struct Slots {
  bool is_tree = false;  // CIUIC_STEP_ANY_WORLD
  uint32_t micro_batches = 1;
  uint32_t first = 0, total = 1;
};

/// The ranks of a group in the order of their slots.
class SlotOrder {
 public:
  SlotOrder(const Host& host, std::string who) : host_(host), who_(std::move(who)) {}
  /// Group ranks, first slots first. Asks the group when the slots are not those of the last time.
  /// Throws UNIMPLEMENTED where the tree does not fall apart into the ranks' subtrees.
  const std::vector<int32_t>& of(const ciuic_group& group, const Slots& slots);

 private:
  struct Known {
    uint32_t group;
    uint32_t micro_batches, first;
    std::vector<int32_t> order;
  };
  Host host_;
  std::string who_;
  std::vector<Known> known_;
};

/// The stack of one block. The lowest buffer is the caller's, and holds the sum at the end.
class SlotStack {
 public:
  /// The buffer that slot number `open()` adds to.
  [[nodiscard]] const Tensor& top(const Tensor& lowest) const {
    return height_ == 0 ? lowest : levels_[height_ - 1].flat;
  }
  [[nodiscard]] uint32_t open() const { return open_; }
  /// Slot open() is complete: adds what the tree says, and opens the next.
  void close(const Host& host, const TensorOps& ops, const Tensor& lowest, uint32_t slots,
             const ciuic_stream* stream);
  void restart() { height_ = open_ = 0; }
  void free() { levels_.clear(); }

 private:
  struct Level {
    Buffer memory;
    Tensor flat;
  };
  [[nodiscard]] const Tensor& level(const Tensor& lowest, uint32_t i) const {
    return i == 0 ? lowest : levels_[i - 1].flat;
  }
  std::vector<Level> levels_;
  uint32_t height_ = 0;  // of complete sums
  uint32_t open_ = 0;
};

/// Adds the parts that `order`'s ranks sent, which lie in `received` by group rank. Leaves the sum in
/// the returned part of it.
Tensor add_tree(const TensorOps& ops, const Tensor& received, const std::vector<int32_t>& order,
                const ciuic_stream* stream);

}  // namespace ciuic::plugins::stages
