// SPDX-License-Identifier: MIT
#include "core/data/tokenizer/byte_pairs.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace ciuic::core {
namespace {

constexpr size_t kShort = 48;
constexpr int32_t kNone = std::numeric_limits<int32_t>::max();

uint64_t pair_of(int32_t left, int32_t right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}

/// The high half of a product by a large odd number spreads the ids, which are small and dense.
uint64_t place_of(uint64_t pair) {
  const uint64_t mixed = (pair ^ (pair >> 29)) * 0x9E3779B97F4A7C15u;
  return mixed >> 24;
}

/// For a heap whose top is the lowest rank, leftmost of several.
bool is_later(const BytePairs::Candidate& a, const BytePairs::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

}  // namespace

BytePairs::BytePairs(const TokenizerSpec& spec) : byte_ids_(spec.byte_ids) {
  table_.resize(std::bit_ceil(std::max<size_t>(16, spec.merges.size() * 2)));
  mask_ = table_.size() - 1;
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const MergeSpec& merge = spec.merges[rank];
    const uint64_t pair = pair_of(merge.left, merge.right);
    uint64_t place = place_of(pair) & mask_;
    while (table_[place].rank >= 0 && table_[place].pair != pair) {
      place = (place + 1) & mask_;
    }
    // Of a pair that is listed twice the later rank counts, as in the tokenizers library.
    table_[place] = {pair, static_cast<int32_t>(rank), merge.merged};
  }
}

const BytePairs::Merge* BytePairs::find(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  for (uint64_t place = place_of(pair) & mask_;; place = (place + 1) & mask_) {
    const Merge& merge = table_[place];
    if (merge.rank < 0) {
      return nullptr;
    }
    if (merge.pair == pair) {
      return &merge;
    }
  }
}

void BytePairs::encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const {
  word.size() <= kShort ? encode_short(word, out, scratch) : encode_long(word, out, scratch);
}

void BytePairs::encode_short(std::string_view word, std::vector<int32_t>& out,
                             Scratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  std::vector<int32_t>& ranks = scratch.ranks;  // of the pair (i, i + 1)
  size_t size = word.size();
  ids.resize(size);
  ranks.resize(size);
  const auto rank_at = [&](size_t i) {
    if (i + 1 >= size) {
      return kNone;
    }
    const Merge* merge = find(ids[i], ids[i + 1]);
    return merge == nullptr ? kNone : merge->rank;
  };
  for (size_t i = 0; i < size; ++i) {
    ids[i] = byte_ids_[static_cast<unsigned char>(word[i])];
  }
  for (size_t i = 0; i < size; ++i) {
    ranks[i] = rank_at(i);
  }
  while (size > 1) {
    const auto least = static_cast<size_t>(
        std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(size)) -
        ranks.begin());
    if (ranks[least] == kNone) {
      break;
    }
    ids[least] = find(ids[least], ids[least + 1])->merged;
    std::copy(ids.begin() + static_cast<std::ptrdiff_t>(least) + 2,
              ids.begin() + static_cast<std::ptrdiff_t>(size),
              ids.begin() + static_cast<std::ptrdiff_t>(least) + 1);
    std::copy(ranks.begin() + static_cast<std::ptrdiff_t>(least) + 2,
              ranks.begin() + static_cast<std::ptrdiff_t>(size),
              ranks.begin() + static_cast<std::ptrdiff_t>(least) + 1);
    --size;
    ranks[least] = rank_at(least);
    if (least > 0) {
      ranks[least - 1] = rank_at(least - 1);
    }
  }
  out.insert(out.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(size));
}

/// Puts the pair that begins at `at` into the heap, if it merges.
void BytePairs::offer(int32_t at, Scratch& scratch) const {
  const Symbol& symbol = scratch.symbols[static_cast<size_t>(at)];
  if (symbol.next < 0) {
    return;
  }
  const int32_t right = scratch.symbols[static_cast<size_t>(symbol.next)].id;
  if (const Merge* merge = find(symbol.id, right)) {
    scratch.heap.push_back({merge->rank, at, symbol.id, right, merge->merged});
    std::push_heap(scratch.heap.begin(), scratch.heap.end(), is_later);
  }
}

void BytePairs::encode_long(std::string_view word, std::vector<int32_t>& out,
                            Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  const auto size = static_cast<int32_t>(word.size());
  symbols.resize(word.size());
  scratch.heap.clear();
  for (int32_t i = 0; i < size; ++i) {
    symbols[static_cast<size_t>(i)] = {
        byte_ids_[static_cast<unsigned char>(word[static_cast<size_t>(i)])], i - 1,
        i + 1 < size ? i + 1 : -1};
  }
  for (int32_t i = 0; i < size; ++i) {
    offer(i, scratch);
  }
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), is_later);
    const Candidate best = scratch.heap.back();
    scratch.heap.pop_back();
    Symbol& left = symbols[static_cast<size_t>(best.at)];
    // A symbol that was merged away has id -1; one that grew is another pair now.
    if (left.id != best.left || left.next < 0 ||
        symbols[static_cast<size_t>(left.next)].id != best.right) {
      continue;
    }
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    left.id = best.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) {
      symbols[static_cast<size_t>(left.next)].previous = best.at;
    }
    offer(best.at, scratch);
    if (left.previous >= 0) {
      offer(left.previous, scratch);
    }
  }
  for (int32_t at = 0; at >= 0; at = symbols[static_cast<size_t>(at)].next) {
    out.push_back(symbols[static_cast<size_t>(at)].id);
  }
}

}  // namespace ciuic::core
