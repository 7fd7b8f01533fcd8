// SPDX-License-Identifier: MIT
//
// Sends and receives. A sender offers its message in the channel to its peer: a small one with its
// bytes, so that the send is done at once; of a large one the receiver says that it wants it, and it
// goes through the channel's two cells while both ends are driven. Messages with one tag meet in the
// order of sending; a message that nobody receives holds up none with another tag, as long as no more
// than 16 of a pair are open. No call blocks.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "batch.h"
#include "board.h"

namespace ciuic::plugins::shm {

/// One thread at a time.
class Messages {
 public:
  /// `ended` is told each message that is done.
  using Ended = std::function<void(const Task&)>;
  Messages(Board& board, Ended ended);

  void post(Task task);
  /// Moves what can be moved; true when anything did. Throws INVALID when the two ends of a message
  /// differ in type or size.
  bool advance();

  [[nodiscard]] bool is_idle() const { return num_open_ == 0; }
  [[nodiscard]] bool has_open(int peer) const;
  /// The open message with the earliest deadline, or NULL.
  [[nodiscard]] const Task* most_urgent() const;
  /// All open messages, which are forgotten.
  std::vector<Task> take_all();

 private:
  struct Sending {
    Task task;
    int offer = -1;  // -1: there was no place yet
    int64_t sent = 0;
  };
  struct Receiving {
    Task task;
    int offer = -1;  // -1: not matched yet
    int64_t received = 0;
  };
  struct Peer {
    std::deque<Sending> sends;
    std::deque<Receiving> receives;
  };

  bool offer(int peer);
  bool pump(int peer);
  bool match(int peer);
  bool accept(int peer, Receiving& receiving);
  bool drain(int peer);
  void end(const Task& task);

  Board& board_;
  Ended ended_;
  std::vector<Peer> peers_;
  size_t num_open_ = 0;
};

}  // namespace ciuic::plugins::shm
