// SPDX-License-Identifier: MIT
//
// Asynchronous work from both sides: Work holds one, Completion makes one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/abi/work.h>
#include <ciuic/host.hpp>

namespace ciuic {

/// One reference to a work. Empty: done already. Releasing neither waits nor cancels.
class Work {
 public:
  Work() = default;
  explicit Work(ciuic_work* owned) : work_(owned) {}
  Work(Work&& o) noexcept : work_(std::exchange(o.work_, nullptr)) {}
  Work& operator=(Work&& o) noexcept {
    std::swap(work_, o.work_);
    return *this;
  }
  Work(const Work& o) : work_(o.work_) {
    if (work_ != nullptr) {
      work_->ops->retain(work_);
    }
  }
  Work& operator=(const Work& o) { return *this = Work(o); }
  ~Work() {
    if (work_ != nullptr) {
      work_->ops->release(work_);
    }
  }

  explicit operator bool() const noexcept { return work_ != nullptr; }
  [[nodiscard]] ciuic_work* get() const noexcept { return work_; }
  /// Gives the reference away, as an out-parameter wants it.
  [[nodiscard]] ciuic_work* release() noexcept { return std::exchange(work_, nullptr); }

  /// Blocks until the work has ended; throws its error, or DEADLINE (the work goes on).
  void wait(const Host& host, int64_t timeout_ns = -1) const {
    if (work_ != nullptr) {
      host.check(work_->ops->wait(work_, timeout_ns));
    }
  }

 private:
  ciuic_work* work_ = nullptr;
};

/// The maker's side: a work that ends when finish or fail is called, once, from any thread.
///
///   ciuic::Completion done(host());
///   start_something([done] { done.finish(); });
///   return done.work();
class Completion {
 public:
  explicit Completion(Host host) : state_(new State(host)), keep_(state_) {}

  /// A new reference for the caller of an ABI function.
  [[nodiscard]] Work work() const {
    State::retain(state_);
    return Work(state_);
  }

  void finish() const { State::end(state_, std::nullopt); }
  void fail(const Error& error) const { State::end(state_, error); }

  /// A bare work with two references, as ciuic_thread_service.promise wants it: one for the caller,
  /// one for fulfil.
  static ciuic_work* make_promise(Host host) {
    auto* state = new State(host);
    State::retain(state);
    return state;
  }
  /// Ends a work of make_promise and gives up the second reference.
  static void fulfil(ciuic_work* promise, const std::optional<Error>& error) {
    State::end(State::self(promise), error);
    State::release(promise);
  }

 private:
  struct State : ciuic_work {
    explicit State(Host h) : ciuic_work{&table()}, host(h) {}

    static const ciuic_work_ops& table() {
      static const ciuic_work_ops ops{sizeof(ciuic_work_ops),
                                      0,
                                      &test,
                                      &wait,
                                      &stream_wait,
                                      &on_done,
                                      &retain,
                                      &release,
                                      nullptr,
                                      nullptr};
      return ops;
    }
    static State* self(ciuic_work* w) { return static_cast<State*>(w); }
    ciuic_status* outcome() const { return error ? host.status(*error) : nullptr; }

    static ciuic_status* test(ciuic_work* w, int32_t* out) {
      State* s = self(w);
      const std::lock_guard lock(s->mutex);
      *out = s->done ? 1 : 0;
      return s->done ? s->outcome() : nullptr;
    }
    static ciuic_status* wait(ciuic_work* w, int64_t timeout_ns) {
      State* s = self(w);
      std::unique_lock lock(s->mutex);
      const auto ended = [s] { return s->done; };
      if (timeout_ns < 0) {
        s->changed.wait(lock, ended);
      } else if (!s->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), ended)) {
        return s->host.status(CIUIC_DEADLINE, "the work is still running");
      }
      return s->outcome();
    }
    static ciuic_status* stream_wait(ciuic_work* w, const ciuic_stream*) { return wait(w, -1); }
    static ciuic_status* on_done(ciuic_work* w, void (*callback)(void*, const ciuic_status*),
                                 void* context) {
      State* s = self(w);
      {
        const std::lock_guard lock(s->mutex);
        if (!s->done) {
          s->callbacks.emplace_back(callback, context);
          return nullptr;
        }
      }
      s->call(callback, context);
      return nullptr;
    }
    void call(void (*callback)(void*, const ciuic_status*), void* context) const {
      ciuic_status* status = outcome();
      callback(context, status);
      if (status != nullptr) {
        host.table()->status_free(host.table()->ctx, status);
      }
    }
    static void retain(ciuic_work* w) {
      self(w)->references.fetch_add(1, std::memory_order_relaxed);
    }
    static void release(ciuic_work* w) {
      if (self(w)->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete self(w);
      }
    }

    static void end(State* s, const std::optional<Error>& error) {
      std::vector<std::pair<void (*)(void*, const ciuic_status*), void*>> callbacks;
      {
        const std::lock_guard lock(s->mutex);
        if (s->done) {
          return;
        }
        if (error) {  // with a text of its own: copies of a std::runtime_error share theirs over
                      // threads
          s->error.emplace(error->code(), std::string(error->what()), error->peer(),
                           error->flags());
        }
        s->done = true;
        callbacks.swap(s->callbacks);
      }
      s->changed.notify_all();
      for (const auto& [callback, context] : callbacks) {
        s->call(callback, context);
      }
    }

    Host host;
    std::atomic<int64_t> references{1};
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::optional<Error> error;
    std::vector<std::pair<void (*)(void*, const ciuic_status*), void*>> callbacks;
  };

  State* state_;
  Work keep_;  // this object's own reference
};

}  // namespace ciuic
