// SPDX-License-Identifier: MIT
//
// The memory of one ciuic_update, checked, and its blocks: each is widened to fp32, updated in place
// or in a buffer, and rounded back.
//
// Gradients: fp32, bf16 or fp16. Masters: fp32, with a value of bf16 or fp16 that is the master
// rounded to nearest even; where there is no master the value is it, in any of the three. State:
// fp32, or bf16 rounded to nearest even or by chance.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <ciuic/optimizer.hpp>

#include "optimizer/block.h"
#include "optimizer/narrow_numbers.h"

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

  /// Hands block `number` to rule(block).
  template <typename Rule>
  void update_block(int64_t number, Rule&& rule) const {
    Buffers buffers;
    const Block block = load(number, buffers);
    rule(block);
    store(block);
  }

 private:
  struct Buffers {  // not initialised: only what is widened is written
    alignas(64) std::array<float, kBlockElements> grad, value;
    alignas(64) std::array<std::array<float, kBlockElements>, kMostStates> state;
  };
  /// One tensor's memory.
  struct Column {
    char* data = nullptr;
    NumberFormat format = NumberFormat::F32;
    [[nodiscard]] char* at(int64_t i) const { return data + i * bytes_of(format); }
  };

  [[nodiscard]] Block load(int64_t number, Buffers& buffers) const;
  void store(const Block& block) const;
  static float* fp32(const Column& column, int64_t begin, int64_t count,
                     std::array<float, kBlockElements>& buffer);

  int64_t count_;
  Column grad_, master_;
  Column copy_;  // no data: the master is the value
  StateFormat state_format_;
  std::array<Column, kMostStates> state_;
  std::array<uint64_t, kMostStates> rounding_{};  // keys' hashes
  uint64_t begin_;                                // of the range in its parameter
};

}  // namespace ciuic::plugins::optimizer
