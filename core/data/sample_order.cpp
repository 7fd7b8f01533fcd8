// SPDX-License-Identifier: MIT
#include "core/data/sample_order.h"

#include <bit>

#include <ciuic/error.hpp>

namespace ciuic::core {
namespace {

/// The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): every bit of the input moves
/// every bit of the output.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// A permutation of [0, 2^(2 half_bits)). A round is invertible whatever its function, here a mix
/// of key, round and half.
uint64_t feistel(uint64_t x, uint64_t key, unsigned half_bits) {
  constexpr uint64_t kRounds = 8;
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = x >> half_bits;
  uint64_t right = x & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (mix(mix(key + round) ^ right) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits) | right;
}

}  // namespace

SampleOrder::SampleOrder(int64_t rows, uint64_t seed, bool is_shuffled)
    : rows_(static_cast<uint64_t>(rows)), seed_(seed), is_shuffled_(is_shuffled) {
  if (rows < 1) {
    throw Error(CIUIC_INTERNAL, "an order of " + std::to_string(rows) + " rows");
  }
  // The smallest power of four that holds all rows: a walk takes less than four rounds of the
  // network on average.
  half_bits_ = (static_cast<unsigned>(std::bit_width(rows_ - 1)) + 1) / 2;
}

int64_t SampleOrder::row(uint64_t sample) const {
  return row_in_epoch(sample / rows_, sample % rows_);
}

int64_t SampleOrder::row_in_epoch(uint64_t epoch, uint64_t index) const {
  if (!is_shuffled_ || rows_ == 1) {
    return static_cast<int64_t>(index);
  }
  // Walking the cycle from an index inside comes back inside, and no two walks meet: a permutation
  // of the rows.
  const uint64_t key = mix(mix(seed_) ^ epoch);
  uint64_t row = index;
  do {
    row = feistel(row, key, half_bits_);
  } while (row >= rows_);
  return static_cast<int64_t>(row);
}

}  // namespace ciuic::core
