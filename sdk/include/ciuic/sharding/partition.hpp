// SPDX-License-Identifier: MIT
//
// How a flat buffer of parameters is cut into parts, one a rank. Parts are ranges of the buffer, of
// equal size as far as granules allow; no part starts or ends inside a granule. Pure functions: every
// rank finds the same answer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ciuic::sharding {

/// Elements [begin, end).
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  [[nodiscard]] int64_t size() const noexcept { return end - begin; }
  [[nodiscard]] bool empty() const noexcept { return end <= begin; }
};

inline Range intersection(Range a, Range b) noexcept {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// A parameter, or a range of one, in a flat buffer: `count` elements from `offset` on. What lies
/// between two pieces is padding.
struct FlatPiece {
  int64_t offset;
  int64_t count;
  int64_t granule;  // of the parameter; `offset` lies on a multiple of it
};

/// Where part `part` of `parts` starts when `total` elements are cut evenly, the first ones larger
/// by one. No overflow for any real model.
inline int64_t even_edge(int64_t total, int64_t part, int64_t parts) noexcept {
  return total / parts * part + std::min(part, total % parts);
}

/// The multiple of `granule` nearest to `at`; the piece's end counts as one.
inline int64_t nearest_granule(int64_t at, int64_t count, int64_t granule) noexcept {
  const int64_t down = at / granule * granule;
  const int64_t up = std::min(down + granule, count);
  return at - down <= up - at ? down : up;
}

/// The parts + 1 edges of `parts` parts of the range `flat`, whose pieces are given in order. Padding
/// goes to either side, never into the count.
inline std::vector<int64_t> cut(const std::vector<FlatPiece>& pieces, Range flat, int64_t parts) {
  int64_t total = 0;
  for (const FlatPiece& p : pieces) {
    total += p.count;
  }
  std::vector<int64_t> edges{flat.begin};
  size_t i = 0;
  int64_t before = 0;  // elements of the pieces before piece i
  for (int64_t part = 1; part < parts; ++part) {
    const int64_t target = even_edge(total, part, parts);
    while (i < pieces.size() && before + pieces[i].count <= target) {
      before += pieces[i++].count;
    }
    int64_t edge = flat.end;
    if (i < pieces.size()) {
      const FlatPiece& p = pieces[i];
      const int64_t at = nearest_granule(target - before, p.count, p.granule);
      const int64_t next = i + 1 < pieces.size() ? pieces[i + 1].offset : flat.end;
      edge = at == p.count ? next : p.offset + at;
    }
    edges.push_back(std::max(edge, edges.back()));
  }
  edges.push_back(flat.end);
  return edges;
}

}  // namespace ciuic::sharding
