// SPDX-License-Identifier: MIT
//
// What a rule's kernel is handed: some elements of an update, each tensor in the format that it has
// in memory. A kernel widens, updates and rounds vector by vector: memory is read once and written
// once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ciuic::plugins::optimizer {

enum class NumberFormat { F32, BF16, F16 };

constexpr int64_t bytes_of(NumberFormat format) { return format == NumberFormat::F32 ? 4 : 2; }

/// Elements of one tensor.
struct Column {
  char* data = nullptr;  // NULL: there is no such tensor
  NumberFormat format = NumberFormat::F32;

  [[nodiscard]] Column from(int64_t i) const {
    return {data == nullptr ? nullptr : data + i * bytes_of(format), format};
  }
};

constexpr int64_t kBlockElements = 8192;
constexpr size_t kMostStates = 2;

/// At most kBlockElements elements. A rule is element-wise, so any split into blocks gives the same
/// bits.
struct Block {
  int64_t begin;  // of its first element in the update's range
  int64_t count;
  Column grad;  // not scaled yet
  Column master;
  Column copy;  // the master, rounded to nearest even; often none
  std::array<Column, kMostStates> state;
  bool by_chance = false;  // how bf16 state is rounded
  uint64_t key = 0;        // for that: of the stretch of 2^32 elements
  uint32_t first = 0;      // the lower half of the first element's index in its parameter
};

}  // namespace ciuic::plugins::optimizer
