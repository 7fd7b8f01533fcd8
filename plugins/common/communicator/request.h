// SPDX-License-Identifier: MIT
//
// A collective as asked for, checked: what remains are addresses, parts and ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <ciuic/abi/communicator.h>

namespace ciuic::plugins {

/// A part of a tensor, in bytes.
struct Part {
  int64_t begin = 0;
  int64_t bytes = 0;
};

struct Request {
  std::string what;  // begins messages
  uint32_t op = 0;
  uint32_t reduce = 0;
  uint32_t tag = 0;
  ciuic_dtype dtype{};
  bool tree = false;
  int peer = 0;
  int rank = 0;
  int world = 1;
  std::chrono::nanoseconds timeout{};

  // NULL and empty where this rank has none. A tensor that is not cut is one part.
  const char* in = nullptr;
  char* out = nullptr;
  std::vector<Part> in_parts, out_parts;  // by group rank where the operation cuts the tensor

  [[nodiscard]] bool is_root() const { return rank == peer; }
  [[nodiscard]] Part in_part(int r) const { return at(in_parts, r); }
  [[nodiscard]] Part out_part(int r) const { return at(out_parts, r); }

 private:
  static Part at(const std::vector<Part>& parts, int r) {
    return parts.size() == 1 ? parts[0] : parts[static_cast<size_t>(r)];
  }
};

/// Throws UNIMPLEMENTED for what capability_bits denies, INVALID for sizes, types and ranks that
/// contradict each other.
/// `who` is the plugin, for messages.
[[nodiscard]] Request check_request(const std::string& who, const ciuic_collective& collective,
                                    int rank, int world, std::chrono::nanoseconds default_timeout);

}  // namespace ciuic::plugins
