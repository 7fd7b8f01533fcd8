// SPDX-License-Identifier: MIT
//
// Session's other half: a monitor sees that operations are late or cannot end, breaks the
// connections and ends all works with one cause.
#include <algorithm>
#include <utility>

#include "communicator/quiet_thread.h"
#include "communicator/text.h"
#include "session.h"

namespace ciuic::plugins::gloo {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 500ms;          // how often operations under way look for dead peers
constexpr auto kReleaseLimit = 900ms;  // by when Gloo must have let go after the connections closed

}  // namespace

void Session::fail(const Failure& failure, std::chrono::nanoseconds timeout, bool is_final) {
  const std::lock_guard lock(mutex_);
  if (!broken_) {
    broken_ = failure;
    patience_ = std::clamp<std::chrono::nanoseconds>(timeout / 16, 10ms, 100ms);
    if (is_final) {
      final_ = failure.cause;
    }
    attention_.notify_all();
  }
}

void Session::abort(int32_t code) {
  const std::string name(code_name(code));
  fail({Error(code, "gloo: the group was aborted by its owner (" + name + ")"), {}}, 0ns, true);
}

// ---- how it is seen ----

void Session::monitor() {
  Lock lock(mutex_);
  while (true) {
    if (broken_) {
      handle_failure(lock);
      attention_.wait(lock, [this] { return closing_; });
      return;
    }
    if (closing_) {
      return;
    }
    next_look_ = live_.empty() ? Clock::time_point::max() : Clock::now() + kLook;
    for (const auto& [id, live] : live_) {
      next_look_ = std::min(next_look_, live.deadline);
    }
    if (live_.empty()) {
      attention_.wait(lock);
    } else if (attention_.wait_until(lock, next_look_) == std::cv_status::timeout) {
      check_deadlines(lock);
      look_around(lock);
    }
  }
}

void Session::check_deadlines(Lock& lock) {
  const auto now = Clock::now();
  for (const auto& [id, live] : live_) {
    if (live.deadline <= now && live.running) {
      const Operation& late = live.operation;
      const Failure failure{
          Error(CIUIC_DEADLINE, late.what + ": not done within " + to_seconds(late.timeout)),
          late.partners};
      const auto timeout = late.timeout;
      lock.unlock();
      fail(failure, timeout, false);
      lock.lock();
      return;
    }
  }
}

/// An operation that waits for one peer does not see that another is gone.
void Session::look_around(Lock& lock) {
  if (broken_ || live_.empty()) {
    return;
  }
  const Live& oldest = live_.begin()->second;
  if (oldest.deadline - oldest.operation.timeout + kLook > Clock::now()) {
    return;
  }
  const std::string what = oldest.operation.what;
  const auto timeout = oldest.operation.timeout;
  lock.unlock();
  const std::string problem = blame_->look_around();
  if (!problem.empty()) {
    fail({Error(CIUIC_UNAVAILABLE, what + ": " + problem), {}}, timeout, false);
  }
  lock.lock();
}

// ---- what follows ----

void Session::handle_failure(Lock& lock) {
  const auto since = Clock::now();
  lock.unlock();
  group_->break_connections();
  lock.lock();
  reporter_ = quiet_thread([this] { report(); });
  attention_.wait_until(lock, since + patience_, [this] { return final_.has_value(); });
  if (!final_) {
    final_ = blame_->guess(*broken_);
  }
  retire_failed(lock);
  attention_.wait_until(lock, since + kReleaseLimit, [this] { return live_.empty(); });
  abandon_rest(lock);
}

/// Those that ended before the cause was known.
void Session::retire_failed(Lock& lock) {
  std::vector<uint64_t> ids;
  for (const auto& [id, live] : live_) {
    if (live.failed && !live.running) {
      ids.push_back(id);
    }
  }
  const std::optional<Error> cause = final_;
  lock.unlock();
  for (const uint64_t id : ids) {
    retire(id, cause);
  }
  lock.lock();
}

/// Gloo has not let go; the works end all the same.
void Session::abandon_rest(Lock& lock) {
  std::vector<std::shared_ptr<Batch>> batches;
  for (auto live = live_.begin(); live != live_.end();) {
    if (!live->second.running) {  // in its local work, which ends by itself
      ++live;
      continue;
    }
    batches.push_back(live->second.batch);
    abandoned_.push_back(std::move(live->second));
    live = live_.erase(live);
  }
  end_works(lock, batches, final_);
  if (!batches.empty()) {
    lock.unlock();
    host_.warn("gloo: " + std::to_string(batches.size()) +
               " operations did not end after the connections were closed");
    lock.lock();
  }
}

/// On a thread of its own: the store may not answer.
void Session::report() {
  Lock lock(mutex_);
  Failure failure = *broken_;
  const auto silence = Clock::now() + patience_ / 2;
  lock.unlock();
  if (const auto dead = blame_->find_dead(failure.cause)) {
    decide(*dead);  // the others find that out by themselves
  }
  try {
    blame_->announce(failure.cause);
    decide(blame_->find_culprit(failure, silence));
  } catch (const Error& e) {  // the store is gone; the host knows whose it was
    if (const auto dead = blame_->find_dead(failure.cause)) {
      return decide(*dead);
    }
    failure.cause =
        Error(failure.cause.code(), std::string(failure.cause.what()) + "; " + e.what(), e.peer());
    decide(blame_->guess(failure));
  }
}

void Session::decide(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!final_) {
    final_ = error;
  }
  attention_.notify_all();
}

}  // namespace ciuic::plugins::gloo
