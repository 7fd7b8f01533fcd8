// SPDX-License-Identifier: MIT
//
// A collective as the mesh works on it: everything copied from the caller's structs, and which
// bytes go to and come from which rank. Direct exchange: every rank sends every rank what that one
// needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ciuic/abi/communicator.h>
#include <ciuic/view.hpp>

namespace ciuic::mutants {

struct Request {
  uint32_t op = 0, reduce = 0, flags = 0, tag = 0, vote = 0;
  int32_t peer = 0;
  double factor = 1;
  int64_t timeout_ns = 0;
  std::string what;  // for messages
  ciuic_dtype dtype = kU8;
  int64_t width = 1;
  const char* in = nullptr;
  char* out = nullptr;
  int64_t in_elements = 0, out_elements = 0;
  std::vector<int64_t> in_counts, in_offsets, out_counts, out_offsets;  // even parts too
  const int64_t* callers_out_counts = nullptr;  // the caller's: gone when submit has returned
  int rank = 0, world = 1;

  [[nodiscard]] bool is_pairwise() const { return op == CIUIC_OP_SEND || op == CIUIC_OP_RECV; }
  [[nodiscard]] bool reduces() const {
    return op == CIUIC_OP_ALL_REDUCE || op == CIUIC_OP_REDUCE || op == CIUIC_OP_REDUCE_SCATTER;
  }
  [[nodiscard]] bool has_result() const {
    return (op != CIUIC_OP_REDUCE && op != CIUIC_OP_GATHER) || rank == peer;
  }
};

/// Throws INVALID for what does not fit together.
Request copy_request(const ciuic_collective& c, int rank, int world);

/// The bytes of this rank that `to` needs.
std::string payload(const Request& r, int to);
/// How many bytes this rank needs from `from`.
int64_t expected_bytes(const Request& r, int from);
/// Where the bytes of `from` go, of an operation that moves them.
char* destination(const Request& r, int from);

}  // namespace ciuic::mutants
