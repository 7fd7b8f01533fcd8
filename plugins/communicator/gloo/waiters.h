// SPDX-License-Identifier: MIT
//
// Threads that block for somebody else: as many as there are waits at the same time, kept for the
// next ones. Sends and receives need them: Gloo tells their end only to a thread that waits, and a
// receive may stay open for as long as its user likes without holding up anything else.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "communicator/quiet_thread.h"

namespace ciuic::plugins::gloo {

/// Any thread. The destructor waits for the tasks, so what they wait for must have an end.
class Waiters {
 public:
  using Task = std::function<void()>;  // may not throw

  Waiters() = default;
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;
  ~Waiters() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  /// Begins at once, on a thread of its own.
  void run(Task task) {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= idle_) {
      threads_.push_back(quiet_thread([this] { work(); }));
      ++idle_;
    }
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
      if (tasks_.empty()) {
        return;
      }
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      --idle_;
      lock.unlock();
      task();
      task = nullptr;  // its memory goes before the thread counts as idle
      lock.lock();
      ++idle_;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  size_t idle_ = 0;  // threads that will take a task
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ciuic::plugins::gloo
