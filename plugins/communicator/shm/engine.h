// SPDX-License-Identifier: MIT
//
// What drives the operations of one group on one rank. Collectives go one after the other, in the order
// of submission; messages beside them. Whoever waits for a work drives; when nobody does, a thread of
// the engine's own. A driver moves whatever can be moved without blocking, then sleeps on the rank's
// bell.
//
// engine.cpp is the way of an operation that goes well; engine_failure.cpp is what happens otherwise:
// the first failure ends the group, with one cause for all works.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "batch.h"
#include "board.h"
#include "collective.h"
#include "messages.h"

namespace ciuic::plugins::shm {

/// A rank of the group.
struct Member {
  int32_t global_rank = 0;
  std::string identity;  // of its process, for death_of
};

/// A group of two or more as one of its ranks sees it.
struct Team {
  std::unique_ptr<Board> board;
  std::vector<Member> members;
  bool may_spin = false;
};

/// Any thread, but submit one call at a time. Made with make_shared; ended with close().
class Engine final : public std::enable_shared_from_this<Engine> {
 public:
  Engine(const Host& host, std::shared_ptr<Heap> heap, Team team);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  /// Throws the cause when the group is broken. An empty work: done already.
  [[nodiscard]] Work submit(std::vector<Request> requests);
  /// Drives until the batch has ended; false at the deadline.
  bool drive(const Batch& batch, Clock::time_point deadline);
  /// Likewise for all.
  [[nodiscard]] bool drive_all(Clock::time_point deadline);
  void abort(int32_t code);
  /// Throws the cause when the group is broken.
  void check() const;
  /// Likewise when a peer has failed or died, which an operation would be told.
  void check_health();
  /// Ends the thread; unfinished operations fail with CANCELLED.
  void close();

 private:
  struct Ended {
    std::shared_ptr<Batch> batch;
    std::optional<Error> error;
  };

  template <typename Done>
  bool drive_until(const Done& done, Clock::time_point deadline);
  void advance_and_tell();
  void advance();
  void take_incoming();
  bool advance_collective();
  [[nodiscard]] bool may_run(int64_t stage) const;
  void task_ended(const Task& task);
  void tell_ended();
  void wait_for_bell(uint32_t seen, Clock::time_point until, bool may_spin);
  [[nodiscard]] bool is_at_work() const { return !waiting_.empty() || !messages_.is_idle(); }
  [[nodiscard]] bool is_idle() const { return num_live_.load() == 0; }
  void wake_own_thread();
  void run_own_thread();

  // engine_failure.cpp
  void look_around();
  void check_deadlines(Clock::time_point now);
  void check_peers(Clock::time_point now);
  [[nodiscard]] bool waits_for(int r) const;
  [[nodiscard]] const Task* most_urgent() const;
  [[nodiscard]] std::optional<Error> find_dead(const std::string& what) const;
  [[nodiscard]] Error late(const Task& task) const;
  [[nodiscard]] Error failure_of(int r) const;
  void fail(const Error& error);
  void refuse_if_broken() const;

  const Host host_;
  const std::shared_ptr<Heap> heap_;
  const std::unique_ptr<Board> board_;
  const std::vector<Member> members_;
  std::vector<int32_t> global_ranks_;
  const bool may_spin_;

  // Guarded by driving_: the driver's.
  std::mutex driving_;
  std::deque<Task> waiting_;             // collectives, the first one may be under way
  std::unique_ptr<Collective> current_;  // of waiting_.front()
  int64_t stage_ = 0;                    // of current_
  uint64_t num_stages_ = 0;              // of all operations
  uint64_t num_collectives_ = 0;
  Messages messages_;
  std::vector<Ended> ended_;
  Clock::time_point next_peer_look_;

  mutable std::mutex incoming_mutex_;
  std::vector<Task> incoming_;
  std::optional<Error> broken_;

  std::atomic<bool> has_incoming_{false};
  std::atomic<Clock::time_point> next_look_{};  // when a driver looks for what is late
  std::atomic<int32_t> abort_code_{CIUIC_OK};
  std::atomic<int64_t> num_live_{0};  // batches that were not told their end
  std::atomic<int> num_waiters_{0};   // threads that drive because they wait

  std::mutex parking_mutex_;
  std::condition_variable parking_;
  bool is_parked_ = false;
  bool is_closing_ = false;
  std::thread thread_;
};

}  // namespace ciuic::plugins::shm
