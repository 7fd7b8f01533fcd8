// SPDX-License-Identifier: MIT
//
// The memory of one ciuic_update, checked, in blocks.
//
// Gradients: fp32, bf16 or fp16. Masters: fp32, with a value of bf16 or fp16 that is the master
// rounded to nearest even; where there is no master the value is it, in any of the three. State:
// fp32, or bf16 rounded to nearest even or by chance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <ciuic/optimizer.hpp>

#include "optimizer/block.h"

namespace ciuic::plugins::optimizer {

/// How a rule keeps its state between updates.
struct StateFormat {
  size_t count = 0;
  NumberFormat format = NumberFormat::F32;
  bool by_chance = false;  // for bf16
};

class UpdateOperands {
 public:
  /// Throws for tensors that it cannot take; `plugin` is named there.
  UpdateOperands(const std::string& plugin, const ciuic_update& u, const StateFormat& state);

  [[nodiscard]] int64_t num_blocks() const {
    return (count_ + kBlockElements - 1) / kBlockElements;
  }

  /// Hands block `number` to rule(block), in two parts where the index' upper half changes in it.
  template <typename Rule>
  void update_block(int64_t number, Rule&& rule) const {
    const int64_t end = std::min((number + 1) * kBlockElements, count_);
    for (int64_t begin = number * kBlockElements; begin < end;) {
      const Block block = from(begin, end);
      rule(block);
      begin += block.count;
    }
  }

 private:
  /// From `begin` up to `end`, or to where the upper half changes.
  [[nodiscard]] Block from(int64_t begin, int64_t end) const;

  int64_t count_;
  uint64_t begin_;  // of the range in its parameter
  uint64_t key_;
  Block all_{};
};

}  // namespace ciuic::plugins::optimizer
