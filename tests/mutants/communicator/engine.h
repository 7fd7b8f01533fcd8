// SPDX-License-Identifier: MIT
//
// Makes progress on all requests of a group: sends each rank its bytes at submit, and completes a
// request when everybody's have come. Deadlines, dead peers and aborts end every request.
#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <ciuic/work.hpp>

#include "behaviour.h"

namespace ciuic::mutants {

/// The requests of one submit: they end together.
struct Batch {
  explicit Batch(Host host) : done(host) {}
  Completion done;
  size_t remaining = 0;
  std::atomic<uint32_t> votes{0};
};

/// Any thread.
class Engine {
 public:
  Engine(Host host, const Behaviour& behaviour, std::unique_ptr<Mesh> mesh);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  [[nodiscard]] const Mesh& mesh() const noexcept { return *mesh_; }

  std::shared_ptr<Batch> submit(std::vector<Request> requests);
  /// One step of progress; waits at most this long for something to happen.
  void pump(std::chrono::milliseconds limit);
  /// Throws what broke the group.
  void check();
  void abort(const Error& error);
  /// False at the deadline.
  bool wait_idle(Clock::time_point deadline);
  /// Without a thread from here on; submit is PRECONDITION until resume.
  void pause();
  void resume();
  void close();

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Calls = std::vector<std::function<void()>>;
  struct Arrived {
    std::vector<std::optional<Message>> messages;  // by rank
    std::vector<int> order;
  };
  struct Pending {
    Request request;
    uint64_t key;
    Clock::time_point deadline;
    std::shared_ptr<Batch> batch;
  };

  void start_thread();
  void stop_thread();
  void start(Request request, const std::shared_ptr<Batch>& batch);
  void file_message(int from, Message message);
  void take_messages();
  void complete_what_can(Calls& calls);
  [[nodiscard]] bool try_complete(Pending& p, Calls& calls);
  [[nodiscard]] bool try_receive(Pending& p, Calls& calls);
  void check_arrived(const Request& r, const Arrived& arrived) const;
  void write_output(const Request& r, const Arrived& arrived) const;
  void end_one(const Pending& p, const std::optional<Error>& error, Calls& calls) const;
  void look_for_failures(Calls& calls);
  [[nodiscard]] int first_missing(const Pending& p) const;
  void break_all(const Error& error, Calls& calls);
  void say_to_all(uint32_t kind);
  [[nodiscard]] Error broken() const;

  Host host_;
  const Behaviour& behaviour_;
  std::unique_ptr<Mesh> mesh_;
  int wake_;
  std::mutex mutex_;
  std::mutex pumping_;
  std::list<Pending> pending_;
  std::map<uint64_t, Arrived> arrived_;
  std::map<std::pair<int, uint64_t>, std::deque<Message>> parcels_;  // by sender and tag
  uint64_t next_ = 0;
  uint64_t num_taken_ = 0;  // messages
  std::optional<Error> broken_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ciuic::mutants
