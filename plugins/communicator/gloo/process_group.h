// SPDX-License-Identifier: MIT
//
// LibTorch's ProcessGroupGloo with plain C++ types: the only file of the plugin that sees
// LibTorch's distributed headers is process_group.cpp (with kv_store.h and posted_transfers.h,
// which only it includes).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ciuic/abi/communicator.h>
#include <ciuic/error.hpp>

#include "communicator/key_value.h"
#include "transfer.h"

namespace ciuic::plugins::gloo {

/// Called once when an operation has ended, by a thread of Gloo's or before its call returns; NULL
/// for success. May not throw.
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

/// Connections among the ranks of a group, two or more. Collectives start in the same order on all
/// ranks; memory belongs to the operation until it is done. One call at a time, but
/// break_connections may come at any time. Every collective carries a signature: ranks whose
/// signatures differ do not meet.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  /// In place, by Gloo's ring. f32, f64, i32, i64, u8; SUM, MIN, MAX, PROD.
  virtual void all_reduce(void* data, int64_t num_elements, ciuic_dtype dtype, uint32_t reduce,
                          uint32_t signature, Milliseconds timeout, Done done) = 0;
  virtual void broadcast(void* data, int64_t bytes, int root, uint32_t signature,
                         Milliseconds timeout, Done done) = 0;
  virtual void barrier(uint32_t signature, Milliseconds timeout, Done done) = 0;
  /// One step after the other.
  virtual void exchange(std::vector<Step> steps, uint32_t signature, Milliseconds timeout,
                        Done done) = 0;
  /// No collective: only the ranks that it names take part. All transfers begin before this
  /// returns.
  virtual void pass(const std::vector<Message>& messages, Milliseconds timeout, Done done) = 0;
  /// Operations under way fail within milliseconds, and later ones at once; the peers see closed
  /// connections.
  virtual void break_connections() noexcept = 0;
};

/// Connects to all peers. Throws DEADLINE, UNAVAILABLE.
[[nodiscard]] std::unique_ptr<ProcessGroup> connect_group(const GroupOptions& options);

}  // namespace ciuic::plugins::gloo
