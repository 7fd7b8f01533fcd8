// SPDX-License-Identifier: MIT
//
// LibTorch's ProcessGroupGloo with plain C++ types: the only file of the plugin that sees
// LibTorch's distributed headers is process_group.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <ciuic/abi/communicator.h>
#include <ciuic/error.hpp>

#include "key_value.h"

namespace ciuic::plugins::gloo {

/// Called once when an operation has ended, by a thread of Gloo's; NULL for success. May not throw.
using Done = std::function<void(const Error*)>;
using Milliseconds = std::chrono::milliseconds;

struct GroupOptions {
  KeyValue store;
  int rank;
  int size;
  std::string address;  // a literal address or an interface's name
  bool is_interface;
  int threads;
  Milliseconds timeout;
};

/// Connections among the ranks of a group, two or more. Operations start in the same order on all
/// ranks; memory belongs to the operation until it is done. One call at a time, but
/// break_connections may come at any time.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  /// In place, by Gloo's ring. f32, f64, i32, i64, u8; SUM, MIN, MAX, PROD.
  virtual void all_reduce(void* data, int64_t num_elements, ciuic_dtype dtype, uint32_t reduce,
                          Milliseconds timeout, Done done) = 0;
  /// Part p of `in` goes to rank p; part p of `out` comes from it. Parts of equal size.
  virtual void all_to_all(const void* in, void* out, int64_t part_bytes, Milliseconds timeout,
                          Done done) = 0;
  virtual void broadcast(void* data, int64_t bytes, int root, Milliseconds timeout, Done done) = 0;
  virtual void barrier(Milliseconds timeout, Done done) = 0;
  /// Operations under way fail within milliseconds, and later ones at once; the peers see closed
  /// connections.
  virtual void break_connections() noexcept = 0;
};

/// Connects to all peers. Throws DEADLINE, UNAVAILABLE.
[[nodiscard]] std::unique_ptr<ProcessGroup> connect_group(const GroupOptions& options);

}  // namespace ciuic::plugins::gloo
