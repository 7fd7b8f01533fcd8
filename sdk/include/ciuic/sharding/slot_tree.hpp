// SPDX-License-Identifier: MIT
//
// The fixed order of additions behind reproducible = "any_world": slots 0 ... n-1 are the leaves of
// one balanced binary tree, in which a range of n splits into its first ceil(n/2) and the rest. A
// rank that holds a whole subtree adds it alone, and the ranks' sums are added by the same rule, so
// the bits do not depend on where the slots were.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ciuic::sharding {

namespace detail {

template <typename Add>
void walk_slot_tree(uint32_t first, uint32_t count, const Add& add) {
  if (count > 1) {
    const uint32_t left = count - count / 2;
    walk_slot_tree(first, left, add);
    walk_slot_tree(first + left, count - left, add);
    add(first, first + left, first + count - 1);
  }
}

}  // namespace detail

/// Pairs (into, from), in order: doing `slot[into] += slot[from]` for each leaves the sum in slot 0.
inline std::vector<std::pair<uint32_t, uint32_t>> tree_additions(uint32_t slots) {
  std::vector<std::pair<uint32_t, uint32_t>> out;
  detail::walk_slot_tree(
      0, slots, [&](uint32_t into, uint32_t from, uint32_t) { out.emplace_back(into, from); });
  return out;
}

/// For slots that come one after the other and a stack of sums: how often the two topmost sums are
/// added after slot i was pushed. One sum is left at the end.
inline std::vector<uint32_t> merges_after(uint32_t slots) {
  std::vector<uint32_t> out(slots, 0);
  detail::walk_slot_tree(0, slots, [&](uint32_t, uint32_t, uint32_t last) { ++out[last]; });
  return out;
}

/// The highest stack that merges_after needs: 1 + ceil(log2(slots)).
inline uint32_t stack_height(uint32_t slots) {
  uint32_t height = 1;
  for (uint32_t n = slots; n > 1; n -= n / 2) {
    ++height;
  }
  return height;
}

}  // namespace ciuic::sharding
