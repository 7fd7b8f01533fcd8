// SPDX-License-Identifier: MIT
//
// How the processes of a run find each other, before there is a communicator. Rank 0 serves a
// key-value store (c10d's TCPStore, or a file that all can reach); everybody introduces itself
// there and goes on when all are there. What goes wrong is said in words: who is missing, who came
// twice, who holds the port, whose run it is.
//
// A store that anybody can connect to belongs to one run: rank 0 writes the run id, others compare.
// Garbage from port scanners is dropped by TCPStore's magic number.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/parallel/rendezvous_socket.h"

namespace ciuic::core {

struct RendezvousOptions {
  int rank = 0;
  int world = 1;
  /// "env://" (MASTER_ADDR and MASTER_PORT), "tcp://host:port" (rank 0's) or "file:///path" (on all
  /// machines the same file).
  std::string address = "env://";
  std::string run_id;  // equal on all ranks, unlike any other run's
  int listen_socket =
      -1;  // rank 0: serve on this one, which is taken over, instead of opening the address
  std::chrono::milliseconds timeout{30'000};
  const std::atomic<bool>* stop = nullptr;  // raised: join gives up, CANCELLED
  std::function<void(std::string_view)>
      progress;  // what join waits for, when that changes; optional
};

/// Membership in a run, and its store. All functions from any thread; none blocks longer than it
/// says. Throws: UNAVAILABLE with peer 0 when the store is gone.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits for the key; nothing when the timeout has passed. 0: asks once; negative: no limit.
  [[nodiscard]] virtual std::optional<std::string> get(const std::string& key,
                                                       std::chrono::nanoseconds timeout) = 0;
  virtual int64_t add(const std::string& key, int64_t delta) = 0;
  /// False when there was none.
  virtual bool remove(const std::string& key) = 0;

  /// "host:pid" by rank.
  [[nodiscard]] virtual const std::vector<std::string>& members() const = 0;
  /// Where the store is; port 0 for a file.
  [[nodiscard]] virtual const Endpoint& endpoint() const = 0;
};

/// Collective: returns on every rank once all `world` ranks have joined.
/// Throws: INVALID (bad address, rank out of range or started twice, worlds differ, another run's
/// store), UNAVAILABLE (port in use, nobody serves, rank 0 left), DEADLINE (which ranks are
/// missing), CANCELLED (stop).
[[nodiscard]] std::unique_ptr<Rendezvous> join(const RendezvousOptions& options);

}  // namespace ciuic::core
