// SPDX-License-Identifier: MIT
//
// Stream sockets between all ranks of a group on one machine, found through "ciuic.kv". Messages
// are whole or not there; reading and writing never block.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

namespace ciuic::mutants {

using Clock = std::chrono::steady_clock;

/// What stands before each message's bytes.
struct Header {
  enum Kind : uint32_t { kCollective = 1, kPairwise = 2, kGoodbye = 3, kAborted = 4 };
  uint32_t kind, op, reduce, dtype;
  uint64_t key;       // collectives: their number; pairwise: the tag
  uint64_t elements;  // of the sender's tensor, for checks
  uint32_t vote, root;
  uint64_t bytes;
};

struct Message {
  Header header;
  std::string bytes;
};

/// A connection, or what is left of it.
struct Peer {
  int socket = -1;
  int32_t global_rank = -1;
  bool has_closed = false;
  bool said_goodbye = false;
  std::string outbox, inbox;
};

/// Not thread-safe.
class Mesh {
 public:
  /// Throws DEADLINE, naming the first rank that did not come.
  Mesh(const Host& host, const std::string& prefix, const std::vector<int32_t>& ranks, int rank,
       std::chrono::nanoseconds timeout);
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;
  ~Mesh();

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int world() const noexcept { return static_cast<int>(peers_.size()); }
  [[nodiscard]] const Peer& peer(int rank) const { return peers_[static_cast<size_t>(rank)]; }

  void send(int to, const Header& header, const std::string& bytes);
  /// Writes and reads what goes at once.
  void transfer();
  /// The next whole message from a peer.
  [[nodiscard]] std::optional<Message> receive(int from);
  /// What to wait for.
  [[nodiscard]] std::vector<pollfd> interests() const;
  [[nodiscard]] bool has_unsent() const;

 private:
  Peer& at(int rank) { return peers_[static_cast<size_t>(rank)]; }
  void connect_all(const Host& host, const std::string& prefix, const std::vector<int32_t>& ranks,
                   Clock::time_point deadline);
  void accept_one(int listener, const std::vector<int32_t>& ranks, Clock::time_point deadline);

  int rank_;
  std::vector<Peer> peers_;  // by group rank; this rank's own has no socket
};

}  // namespace ciuic::mutants
