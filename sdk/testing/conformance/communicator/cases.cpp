// SPDX-License-Identifier: MIT
#include "cases.hpp"

namespace ciuic::testing::communicator {
namespace {

constexpr int64_t kGap = 3;

/// Elements that `from` has for `to` in an uneven form; some are none.
int64_t uneven_count(const Case& c, int from, int to) {
  if (c.op == CIUIC_OP_ALL_TO_ALL) {
    return mix(c.salt, static_cast<uint64_t>(from * 16 + to)) % 4 == 0 ? 0
                                                                       : c.count + from + 2 * to;
  }
  const int part = c.op == CIUIC_OP_ALL_GATHER || c.op == CIUIC_OP_GATHER ? from : to;
  return mix(c.salt, static_cast<uint64_t>(part)) % 4 == 0 ? 0 : c.count + 3 * part;
}

int64_t part_count(const Case& c, int from, int to) {
  return c.spread == Spread::Even ? c.count : uneven_count(c, from, to);
}

/// Lays parts of these sizes into a buffer; returns its size.
int64_t lay(Spread spread, std::vector<Part>& parts) {
  int64_t end = spread == Spread::Gaps ? kGap : 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[spread == Spread::Reversed ? parts.size() - 1 - i : i];
    part.offset = end;
    end += part.count + (spread == Spread::Gaps ? kGap : 0);
  }
  return end;
}

bool cuts_in(const Case& c) {
  return c.op == CIUIC_OP_REDUCE_SCATTER || c.op == CIUIC_OP_SCATTER || c.op == CIUIC_OP_ALL_TO_ALL;
}
bool cuts_out(const Case& c) {
  return c.op == CIUIC_OP_ALL_GATHER || c.op == CIUIC_OP_GATHER || c.op == CIUIC_OP_ALL_TO_ALL;
}

}  // namespace

const char* op_name(uint32_t op) {
  static const char* const names[] = {"op 0",       "all_reduce", "reduce", "reduce_scatter",
                                      "all_gather", "broadcast",  "gather", "scatter",
                                      "all_to_all", "send",       "recv",   "barrier"};
  return op <= CIUIC_OP_BARRIER ? names[op] : "an unknown operation";
}

const char* reduce_name(uint32_t reduce) {
  static const char* const names[] = {"", "sum", "avg", "min", "max", "prod", "or", "and"};
  return reduce <= CIUIC_REDUCE_AND ? names[reduce] : "an unknown reduction";
}

std::string describe(const Case& c, int world) {
  static const char* const spreads[] = {"", ", uneven parts", ", uneven parts with gaps",
                                        ", uneven parts in reverse order"};
  std::string text = op_name(c.op);
  text += c.reduce == 0 ? "" : std::string(" ") + reduce_name(c.reduce);
  text += " " + dtype_name(c.dtype) + ", n=" + std::to_string(c.count) + ", world " +
          std::to_string(world) + spreads[static_cast<int>(c.spread)];
  const bool has_root = c.op == CIUIC_OP_REDUCE || c.op == CIUIC_OP_BROADCAST ||
                        c.op == CIUIC_OP_GATHER || c.op == CIUIC_OP_SCATTER;
  text += has_root ? ", root " + std::to_string(c.root) : "";
  text += c.in_place ? ", in place" : "";
  text += c.shift == 0 ? "" : ", " + std::to_string(c.shift) + " elements into the memory";
  text += (c.flags & CIUIC_COLLECTIVE_TREE) != 0 ? ", TREE" : "";
  text += (c.flags & CIUIC_COLLECTIVE_WIDE) != 0 ? ", WIDE" : "";
  text += c.factor == 0 ? "" : ", factor " + std::to_string(c.factor);
  return text;
}

bool is_reducing(uint32_t op) {
  return op == CIUIC_OP_ALL_REDUCE || op == CIUIC_OP_REDUCE || op == CIUIC_OP_REDUCE_SCATTER;
}
bool is_16_bit_float(ciuic_dtype dtype) { return same(dtype, kF16) || same(dtype, kBF16); }
bool is_float(ciuic_dtype dtype) {
  return is_16_bit_float(dtype) || same(dtype, kF32) || same(dtype, kF64);
}

Layout layout_of(const Case& c, int rank, int world) {
  Layout layout;
  const bool is_root = rank == c.root;
  layout.has_in = c.op != CIUIC_OP_BROADCAST && c.op != CIUIC_OP_BARRIER &&
                  (c.op != CIUIC_OP_SCATTER || is_root);
  layout.has_out =
      c.op != CIUIC_OP_BARRIER && ((c.op != CIUIC_OP_REDUCE && c.op != CIUIC_OP_GATHER) || is_root);
  for (int r = 0; r < world; ++r) {
    if (cuts_in(c)) {
      layout.in.push_back({0, part_count(c, rank, r)});
    }
    if (cuts_out(c)) {
      layout.out.push_back({0, part_count(c, r, rank)});
    }
  }
  layout.in_elements = cuts_in(c) ? lay(c.spread, layout.in) : part_count(c, rank, rank);
  layout.out_elements = cuts_out(c) ? lay(c.spread, layout.out) : part_count(c, rank, rank);
  return layout;
}

std::vector<Piece> pieces_of(const Case& c, int rank, int world) {
  const Layout own = layout_of(c, rank, world);
  const auto self = static_cast<size_t>(rank);
  std::vector<Piece> pieces;
  if (!own.has_out) {
    return pieces;
  }
  switch (c.op) {
    case CIUIC_OP_ALL_REDUCE:
    case CIUIC_OP_REDUCE:
      pieces.push_back({kAll, 0, 0, c.count});
      break;
    case CIUIC_OP_REDUCE_SCATTER:
      pieces.push_back({kAll, own.in[self].offset, 0, own.in[self].count});
      break;
    case CIUIC_OP_BROADCAST:
      pieces.push_back({c.root, 0, 0, c.count});
      break;
    case CIUIC_OP_SCATTER: {
      const Part part = layout_of(c, c.root, world).in[self];
      pieces.push_back({c.root, part.offset, 0, part.count});
      break;
    }
    case CIUIC_OP_ALL_GATHER:
    case CIUIC_OP_GATHER:
    case CIUIC_OP_ALL_TO_ALL:
      for (int r = 0; r < world; ++r) {
        const Part to = own.out[static_cast<size_t>(r)];
        const int64_t from =
            c.op == CIUIC_OP_ALL_TO_ALL ? layout_of(c, r, world).in[self].offset : 0;
        pieces.push_back({r, from, to.offset, to.count});
      }
      break;
    default:
      break;
  }
  return pieces;
}

}  // namespace ciuic::testing::communicator
