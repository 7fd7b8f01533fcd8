// SPDX-License-Identifier: MIT
//
// The life of operations on one group: deadlines, failure, abort. Gloo knows a timeout for each
// wait on a peer and nothing more; here every operation ends by its deadline, and the first failure
// ends the group, with one cause for all works.
//
// session.cpp is the way of an operation that goes well. failure.cpp is what happens otherwise:
// after a failure the connections are closed, so that Gloo lets go of the memory before the works
// end, and the one to blame is looked for (blame.h).
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "batch.h"
#include "blame.h"
#include "operation.h"

namespace ciuic::plugins::gloo {

/// Any thread, but submit one call at a time. Made with make_shared; ended with close().
class Session final : public std::enable_shared_from_this<Session> {
 public:
  /// A group of one rank has no connections, and its operations finish at once.
  explicit Session(const Host& host);
  Session(const Host& host, Blame blame, std::unique_ptr<ProcessGroup> group);

  /// Throws the cause when the group is broken. An empty work: done already.
  [[nodiscard]] Work submit(std::vector<Operation> operations);
  void abort(int32_t code);
  /// Throws the cause when the group is broken.
  void check() const;
  /// False: operations are still under way at the deadline.
  [[nodiscard]] bool wait_idle(Clock::time_point deadline) const;
  /// Ends threads and connections; unfinished operations fail with CANCELLED. A healthy group waits
  /// up to `goodbye` for its peers, as a connection that closes early takes the peers' last bytes
  /// with it.
  void close(Milliseconds goodbye);

 private:
  struct Live {
    Operation operation;
    std::shared_ptr<Batch> batch;
    Clock::time_point deadline;
    bool running = false;  // Gloo has it
    bool failed = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void start(uint64_t id, Live& live);
  void run_ended(uint64_t id, const Error* error);
  void retire(uint64_t id, const std::optional<Error>& error);
  void end_works(Lock& lock, const std::vector<std::shared_ptr<Batch>>& batches,
                 const std::optional<Error>& error);
  void say_goodbye(Milliseconds limit);
  void release_group();

  // failure.cpp
  void fail(const Failure& failure, std::chrono::nanoseconds timeout, bool is_final);
  void monitor();
  void check_deadlines(Lock& lock);
  void look_around(Lock& lock);
  void handle_failure(Lock& lock);
  void retire_failed(Lock& lock);
  void abandon_rest(Lock& lock);
  void report();
  void decide(const Error& error);

  const Host host_;
  const std::optional<Blame> blame_;

  mutable std::mutex mutex_;
  std::condition_variable attention_;      // the monitor's
  mutable std::condition_variable ended_;  // an operation was retired
  std::unique_ptr<ProcessGroup> group_;
  std::map<uint64_t, Live> live_;  // in order of submission
  std::vector<Live> abandoned_;    // Gloo may still use their memory
  size_t ending_ = 0;              // threads that let works call back now
  uint64_t next_id_ = 0;
  Clock::time_point next_look_ = Clock::time_point::max();  // when the monitor wakes by itself
  std::optional<Failure> broken_;                           // the first failure
  std::optional<Error> final_;                              // as the works report it
  std::chrono::nanoseconds patience_{};  // the search for the culprit may take so long
  bool closing_ = false;
  std::thread monitor_;
  std::thread reporter_;
};

}  // namespace ciuic::plugins::gloo
