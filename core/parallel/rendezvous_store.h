// SPDX-License-Identifier: MIT
//
// A c10d store with deadlines. A c10d client talks to its server on the caller's thread and has no
// limit for that: a stopped server would stop us as well. Here one thread talks, callers wait for
// it as long as they may.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace ciuic::core {

using Clock = std::chrono::steady_clock;

/// What it takes to open a store.
struct StoreAddress {
  std::string file;  // not empty: a FileStore
  std::string host;  // else a TCPStore: a literal address
  int port = 0;
  int listen_socket = -1;  // taken over: serve on it
  int world = 1;
  std::string name;  // for messages: "127.0.0.1:29500"
};

/// Any thread. Errors: UNAVAILABLE with peer 0 when the server is gone or does not answer.
class BoundedStore {
 public:
  BoundedStore(const StoreAddress& address, Clock::time_point deadline);
  ~BoundedStore();
  BoundedStore(const BoundedStore&) = delete;
  BoundedStore& operator=(const BoundedStore&) = delete;

  void set(const std::string& key, const std::string& value);
  /// The value now, or nothing.
  [[nodiscard]] std::optional<std::string> peek(const std::string& key, Clock::time_point deadline);
  /// Waits for the key until the deadline; nothing then.
  [[nodiscard]] std::optional<std::string> get(const std::string& key, Clock::time_point deadline);
  int64_t add(const std::string& key, int64_t delta);
  bool remove(const std::string& key);

 private:
  struct Server;
  using Job = std::function<void(Server&)>;
  /// Runs the job on the store's thread. False: not done by the deadline; the job may still run
  /// later.
  bool run(Job job, Clock::time_point deadline);
  void must_run(Job job);

  std::shared_ptr<Server> server_;
};

}  // namespace ciuic::core
