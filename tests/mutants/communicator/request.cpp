// SPDX-License-Identifier: MIT
#include "request.h"

#include <ciuic/error.hpp>

namespace ciuic::mutants {
namespace {

/// Counts and offsets of all ranks; even parts where the caller gave none.
void copy_parts(const int64_t* counts, const int64_t* offsets, int64_t elements, int world,
                std::vector<int64_t>& out_counts, std::vector<int64_t>& out_offsets) {
  int64_t end = 0;
  for (int r = 0; r < world; ++r) {
    out_counts.push_back(counts != nullptr ? counts[r] : elements / world);
    out_offsets.push_back(offsets != nullptr ? offsets[r] : end);
    end += out_counts.back();
  }
}

bool cuts_in(uint32_t op) {
  return op == CIUIC_OP_REDUCE_SCATTER || op == CIUIC_OP_SCATTER || op == CIUIC_OP_ALL_TO_ALL;
}
bool cuts_out(uint32_t op) {
  return op == CIUIC_OP_ALL_GATHER || op == CIUIC_OP_GATHER || op == CIUIC_OP_ALL_TO_ALL;
}
size_t index(int rank) { return static_cast<size_t>(rank); }

std::string slice(const char* base, int64_t offset, int64_t count, int64_t width) {
  return count == 0 ? std::string()
                    : std::string(base + offset * width, static_cast<size_t>(count * width));
}

}  // namespace

Request copy_request(const ciuic_collective& c, int rank, int world) {
  Request r;
  r.op = c.op;
  r.reduce = c.reduce;
  r.flags = c.flags;
  r.tag = c.tag;
  r.vote = c.vote;
  r.peer = c.peer;
  r.factor = c.factor == 0 ? 1 : c.factor;
  r.timeout_ns = c.timeout_ns;
  r.rank = rank;
  r.world = world;
  r.what = "op " + std::to_string(c.op) + " '" + std::string(to_view(c.label)) + "'";
  for (const ciuic_tensor* t : {c.in, c.out}) {
    if (t != nullptr) {
      r.dtype = t->t.dtype;
      r.width = dtype_bytes(r.dtype);
    }
  }
  if (c.in != nullptr) {
    r.in = static_cast<const char*>(tensor_data(*c.in));
    r.in_elements = num_elements(*c.in);
  }
  if (c.out != nullptr) {
    r.out = static_cast<char*>(tensor_data(*c.out));
    r.out_elements = num_elements(*c.out);
  }
  copy_parts(c.in_counts, c.in_offsets, r.in_elements, world, r.in_counts, r.in_offsets);
  copy_parts(c.out_counts, c.out_offsets, r.out_elements, world, r.out_counts, r.out_offsets);
  r.callers_out_counts = c.out_counts;
  if (c.peer < 0 || c.peer >= world) {
    throw Error(CIUIC_INVALID,
                r.what + ": rank " + std::to_string(c.peer) + " is not in the group");
  }
  return r;
}

std::string payload(const Request& r, int to) {
  const bool is_for_root = r.op == CIUIC_OP_REDUCE || r.op == CIUIC_OP_GATHER;
  const bool is_from_root = r.op == CIUIC_OP_BROADCAST || r.op == CIUIC_OP_SCATTER;
  if ((is_for_root && to != r.peer) || (is_from_root && r.rank != r.peer) ||
      r.op == CIUIC_OP_BARRIER || r.op == CIUIC_OP_RECV) {
    return {};
  }
  if (r.op == CIUIC_OP_BROADCAST) {
    return slice(r.out, 0, r.out_elements, r.width);
  }
  return cuts_in(r.op) ? slice(r.in, r.in_offsets[index(to)], r.in_counts[index(to)], r.width)
                       : slice(r.in, 0, r.in_elements, r.width);
}

int64_t expected_bytes(const Request& r, int from) {
  const bool is_from_root = r.op == CIUIC_OP_BROADCAST || r.op == CIUIC_OP_SCATTER;
  if (!r.has_result() || (is_from_root && from != r.peer) || r.op == CIUIC_OP_BARRIER) {
    return 0;
  }
  if (r.op == CIUIC_OP_REDUCE_SCATTER) {
    return r.in_counts[index(r.rank)] * r.width;
  }
  return (cuts_out(r.op) ? r.out_counts[index(from)] : r.out_elements) * r.width;
}

char* destination(const Request& r, int from) {
  return cuts_out(r.op) ? r.out + r.out_offsets[index(from)] * r.width : r.out;
}

}  // namespace ciuic::mutants
