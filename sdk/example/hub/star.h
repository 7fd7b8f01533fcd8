// SPDX-License-Identifier: MIT
//
// The wires of the hub: Unix-domain sockets between rank 0 of a group and every other rank. Every
// transfer has a deadline, ends when the group is aborted, and names the peer that is gone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

namespace hub {

using Clock = std::chrono::steady_clock;

/// A file descriptor that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  Socket& operator=(Socket&& o) noexcept;
  ~Socket();
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

/// One rank's end: the hub holds a socket per other rank, any other rank holds one to the hub.
class Star {
 public:
  /// All ranks of the group call; they meet under `key` of "ciuic.kv". ranks: the global rank of
  /// each group rank, for blame.
  Star(const ciuic::Host& host, const std::string& key, int rank, std::vector<int32_t> ranks,
       Clock::time_point deadline);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const std::vector<int32_t>& ranks() const noexcept { return ranks_; }

  /// Moves exactly `bytes` to or from a group rank. Throws DEADLINE, UNAVAILABLE with the peer, or
  /// the code of an abort.
  void send(int peer, const void* data, size_t bytes, Clock::time_point deadline) const;
  void receive(int peer, void* data, size_t bytes, Clock::time_point deadline) const;

  void abort(int32_t code) noexcept { aborted_ = code; }
  void check_not_aborted() const;

 private:
  void accept_all(const ciuic::Host& host, const std::string& key, Clock::time_point deadline);
  void connect_to_hub(const ciuic::Host& host, const std::string& key, Clock::time_point deadline);
  /// Waits until the peer's socket is ready for `events` (poll).
  void wait_ready(int fd, short events, int peer, Clock::time_point deadline) const;
  [[noreturn]] void lost(int peer) const;

  int rank_;
  std::vector<int32_t> ranks_;
  std::vector<Socket> sockets_;  // by group rank; the own one is empty
  std::atomic<int32_t> aborted_{CIUIC_OK};
};

}  // namespace hub
