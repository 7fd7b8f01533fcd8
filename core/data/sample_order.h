// SPDX-License-Identifier: MIT
//
// Which row is sample p? Samples count without end: sample p is row order(seed, p / rows)[p mod
// rows]. The order of an epoch is a permutation that needs no memory and no state: a Feistel
// network over the next power of four, walked until it falls inside (Black and Rogaway, "Ciphers
// with Arbitrary Finite Domains", CT-RSA 2002, section 4). So resume needs only p, at any world
// size.
#pragma once

#include <cstdint>

namespace ciuic::core {

class SampleOrder {
 public:
  /// rows >= 1.
  SampleOrder(int64_t rows, uint64_t seed, bool is_shuffled);

  [[nodiscard]] int64_t row(uint64_t sample) const;
  /// The row at `index` of an epoch's permutation.
  [[nodiscard]] int64_t row_in_epoch(uint64_t epoch, uint64_t index) const;

 private:
  uint64_t rows_;
  uint64_t seed_;
  bool is_shuffled_;
  unsigned half_bits_;
};

}  // namespace ciuic::core
