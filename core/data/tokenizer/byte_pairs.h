// SPDX-License-Identifier: MIT
//
// Byte-pair encoding of one word: the pair with the lowest rank is merged, the leftmost of several,
// until none is left (Sennrich, Haddow, Birch, arXiv:1508.07909, algorithm 1, by rank as in GPT-2).
// Short words walk an array, long ones a heap over a linked list: n log n for any input.
//
// Thread rule: const; each thread brings its own Scratch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ciuic::core {

class BytePairs {
 public:
  struct Symbol {
    int32_t id = 0;
    int32_t previous = 0;
    int32_t next = 0;
  };
  struct Candidate {
    int32_t rank = 0;
    int32_t at = 0;
    int32_t left = 0;
    int32_t right = 0;
    int32_t merged = 0;
  };
  struct Scratch {
    std::vector<int32_t> ranks;
    std::vector<int32_t> ids;
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  explicit BytePairs(const TokenizerSpec& spec);

  /// Appends the tokens of `word`, which has at least one byte.
  void encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const;

 private:
  struct Merge {
    uint64_t pair = 0;
    int32_t rank = -1;  // -1: an empty place
    int32_t merged = 0;
  };

  [[nodiscard]] const Merge* find(int32_t left, int32_t right) const;
  void encode_short(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const;
  void encode_long(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const;
  void offer(int32_t at, Scratch& scratch) const;

  std::vector<Merge> table_;  // open addressing, a power of two of places
  uint64_t mask_ = 0;
  std::vector<int32_t> byte_ids_;
};

}  // namespace ciuic::core
