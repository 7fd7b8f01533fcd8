// SPDX-License-Identifier: MIT
#include "session.h"

#include <algorithm>
#include <csignal>
#include <future>
#include <utility>

#include "liveness.h"

namespace ciuic::plugins::gloo {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 500ms;          // how often operations under way look for dead peers
constexpr auto kReleaseLimit = 900ms;  // by when Gloo must have let go after the connections closed
constexpr auto kSlack = 200ms;         // Gloo's own timeout comes after ours

constexpr const char* kSomebodyFailed = "failed/any";
std::string failed_key(size_t rank) { return "failed/" + std::to_string(rank); }

/// A thread that leaves the signals to the main thread.
template <typename Body>
std::thread quiet_thread(Body body) {
  return std::thread([body = std::move(body)]() mutable {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    body();
  });
}

std::string seconds_text(std::chrono::nanoseconds t) {
  const std::string text = std::to_string(std::chrono::duration<double>(t).count());
  return text.substr(0, text.find('.') + 4) + " s";
}

std::string name_ranks(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

/// The collectives of one submit; they complete together.
struct Session::Batch {
  Batch(const Host& host, size_t n) : done(host), remaining(n) {}

  Completion done;
  std::mutex mutex;
  size_t remaining;
  std::optional<Error> error;

  void one_ended(const std::optional<Error>& e) {
    {
      const std::lock_guard lock(mutex);
      if (e && !error) {
        error = e;
      }
      if (--remaining > 0) {
        return;
      }
    }
    if (error) {
      done.fail(*error);
    } else {
      done.finish();
    }
  }
};

Session::Session(const Host& host) : host_(host) {}

Session::Session(const Host& host, KeyValue kv, std::vector<Member> members, int rank,
                 std::unique_ptr<ProcessGroup> group)
    : host_(host),
      kv_(std::move(kv)),
      members_(std::move(members)),
      rank_(rank),
      group_(std::move(group)) {
  monitor_ = quiet_thread([this] { monitor(); });
}

// ---- the way of an operation ----

Work Session::submit(std::vector<Operation> operations) {
  check();
  if (operations.empty()) {
    return {};
  }
  const auto batch = std::make_shared<Batch>(host_, operations.size());
  Work work = batch->done.work();
  std::vector<std::pair<uint64_t, Live*>> started;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (Operation& operation : operations) {
      const auto deadline = now + operation.timeout;
      const size_t parts = operation.parts.size();
      Live& live = live_[next_id_];
      live = Live{std::move(operation), batch, deadline, parts, false};
      started.emplace_back(next_id_++, &live);
      if (deadline < next_look_) {
        attention_.notify_all();
      }
    }
  }
  for (const auto& [id, live] : started) {
    start(id, *live);
  }
  return work;
}

void Session::start(uint64_t id, Live& live) {
  // live stays until its last part is done, so nothing of it is touched after the last one was
  // started.
  const size_t count = live.operation.parts.size();
  if (count == 0) {
    if (live.operation.finish) {
      live.operation.finish();
    }
    retire(id, std::nullopt);
    return;
  }
  const Milliseconds timeout = std::chrono::ceil<Milliseconds>(live.operation.timeout) + kSlack;
  // Parts own the memory that Gloo works in: they live as long as Gloo keeps the callback.
  const auto parts = std::make_shared<const std::vector<Part>>(std::move(live.operation.parts));
  for (const Part& part : *parts) {
    try {
      part(*group_, timeout, [self = shared_from_this(), id, parts](const Error* error) {
        self->part_done(id, error);
      });
    } catch (const Error& error) {
      part_done(id, &error);
    }
  }
}

void Session::part_done(uint64_t id, const Error* error) {
  Lock lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end()) {
    return;  // abandoned
  }
  Live& live = found->second;
  if (error != nullptr) {
    live.failed = true;
    const Error seen(error->code(), live.operation.what + ": " + error->what(), error->peer());
    const auto timeout = live.operation.timeout;
    lock.unlock();
    fail(seen, timeout, false);
    lock.lock();
  }
  if (--live.parts_left > 0) {
    return;
  }
  if (live.failed) {
    const std::optional<Error> cause = final_;
    lock.unlock();
    if (cause) {
      retire(id, cause);
    } else {
      attention_.notify_all();  // the monitor will
    }
    return;
  }
  const std::function<void()> finish = std::move(live.operation.finish);
  lock.unlock();
  if (finish) {
    finish();
  }
  retire(id, std::nullopt);
}

void Session::retire(uint64_t id, const std::optional<Error>& error) {
  std::shared_ptr<Batch> batch;
  {
    const std::lock_guard lock(mutex_);
    const auto node = live_.extract(id);
    if (node.empty()) {
      return;
    }
    batch = node.mapped().batch;
    if (broken_) {
      attention_.notify_all();
    }
  }
  ended_.notify_all();
  batch->one_ended(error);
}

bool Session::wait_idle(Clock::time_point deadline) const {
  Lock lock(mutex_);
  return ended_.wait_until(lock, deadline, [this] { return live_.empty(); });
}

// ---- failure ----

void Session::check() const {
  const std::lock_guard lock(mutex_);
  if (broken_) {
    throw final_ ? *final_ : *broken_;
  }
}

void Session::fail(const Error& error, std::chrono::nanoseconds timeout, bool is_final) {
  const std::lock_guard lock(mutex_);
  if (!broken_) {
    broken_ = error;
    patience_ = std::clamp<std::chrono::nanoseconds>(timeout / 16, 10ms, 100ms);
    if (is_final) {
      final_ = error;
    }
    attention_.notify_all();
  }
}

void Session::abort(int32_t code) {
  fail(Error(code,
             "gloo: the group was aborted by its owner (" + std::string(code_name(code)) + ")"),
       0ns, true);
}

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
    if (live.deadline <= now && live.parts_left > 0) {
      const Error late(CIUIC_DEADLINE, live.operation.what + ": not done within " +
                                           seconds_text(live.operation.timeout));
      const auto timeout = live.operation.timeout;
      lock.unlock();
      fail(late, timeout, false);
      lock.lock();
      return;
    }
  }
}

/// An operation that waits for one peer does not see that another is gone.
void Session::look_around(Lock& lock) {
  if (broken_ || live_.empty() ||
      live_.begin()->second.deadline - live_.begin()->second.operation.timeout + kLook >
          Clock::now()) {
    return;
  }
  const std::string what = live_.begin()->second.operation.what;
  const auto timeout = live_.begin()->second.operation.timeout;
  lock.unlock();
  std::string problem;
  for (const Member& member : members_) {
    if (problem.empty() && !death_of(member.identity).empty()) {
      problem = "a peer's process has ended";
    }
  }
  try {
    if (problem.empty() && kv_->get(kSomebodyFailed, Clock::now())) {
      problem = "the group has failed elsewhere";
    }
  } catch (const Error&) {
    // the store is gone: that alone ends no operation
  }
  if (!problem.empty()) {
    fail(Error(CIUIC_UNAVAILABLE, what + ": " + problem), timeout, false);
  }
  lock.lock();
}

void Session::handle_failure(Lock& lock) {
  const auto since = Clock::now();
  lock.unlock();
  group_->break_connections();
  lock.lock();
  reporter_ = quiet_thread([this] { report(); });
  attention_.wait_until(lock, since + patience_, [this] { return final_.has_value(); });
  if (!final_) {
    final_ = guess(*broken_);
  }
  retire_failed(lock);
  attention_.wait_until(lock, since + kReleaseLimit, [this] { return live_.empty(); });
  abandon_rest(lock);
}

/// Those that ended before the cause was known.
void Session::retire_failed(Lock& lock) {
  std::vector<uint64_t> ids;
  for (const auto& [id, live] : live_) {
    if (live.failed && live.parts_left == 0) {
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
    if (live->second.parts_left == 0) {  // in its local work, which ends by itself
      ++live;
      continue;
    }
    batches.push_back(live->second.batch);
    abandoned_.push_back(std::move(live->second));
    live = live_.erase(live);
  }
  const std::optional<Error> cause = final_;
  lock.unlock();
  for (const auto& batch : batches) {
    batch->one_ended(cause);
  }
  if (!batches.empty()) {
    host_.warn("gloo: " + std::to_string(batches.size()) +
               " operations did not end after the connections were closed");
  }
  ended_.notify_all();
  lock.lock();
}

// ---- who is to blame ----

/// On a thread of its own: the store may not answer.
void Session::report() {
  Lock lock(mutex_);
  const Error cause = *broken_;
  const auto silence = Clock::now() + patience_ / 2;
  lock.unlock();
  if (const auto dead = find_dead(cause)) {
    decide(*dead);  // the others find that out by themselves
  }
  try {
    kv_->set(failed_key(static_cast<size_t>(rank_)),
             std::to_string(cause.code()) + " " + cause.what());
    kv_->set(kSomebodyFailed, std::to_string(rank_));
    decide(find_culprit(cause, silence));
  } catch (const Error& e) {  // the store is gone; the host knows whose it was
    const auto dead = find_dead(cause);
    decide(dead
               ? *dead
               : guess(Error(cause.code(), std::string(cause.what()) + "; " + e.what(), e.peer())));
  }
}

void Session::decide(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!final_) {
    final_ = error;
  }
  attention_.notify_all();
}

std::optional<Error> Session::find_dead(const Error& cause) const {
  for (const Member& member : members_) {
    if (const std::string death = death_of(member.identity); !death.empty()) {
      return Error(CIUIC_UNAVAILABLE,
                   std::string(cause.what()) + "; rank " + std::to_string(member.global_rank) +
                       " is gone: " + death,
                   member.global_rank);
    }
  }
  return std::nullopt;
}

/// Without the store, which does not answer.
Error Session::guess(const Error& cause) const {
  for (const Member& member : members_) {
    if (const std::string stop = stop_of(member.identity); !stop.empty()) {
      const std::string text =
          std::string(cause.what()) + "; no sign of rank " + std::to_string(member.global_rank);
      return Error(cause.code(), text + ": " + stop, member.global_rank);
    }
  }
  const int32_t only =
      members_.size() == 2 ? members_[static_cast<size_t>(1 - rank_)].global_rank : cause.peer();
  return Error(cause.code(), cause.what(), only);
}

Error Session::find_culprit(const Error& cause, Clock::time_point deadline) const {
  const std::string text = cause.what();
  std::vector<int32_t> silent;
  std::string known;
  bool deadline_passed = cause.code() == CIUIC_DEADLINE;
  for (size_t r = 0; r < members_.size(); ++r) {
    if (r == static_cast<size_t>(rank_)) {
      continue;
    }
    const int32_t global = members_[r].global_rank;
    const auto said = kv_->get(failed_key(r), deadline);
    if (!said) {
      silent.push_back(global);
      const std::string stop = stop_of(members_[r].identity);
      known += stop.empty() ? "" : " (" + stop + ")";
      continue;
    }
    const int code = std::atoi(said->c_str());
    if (code != CIUIC_DEADLINE && code != CIUIC_UNAVAILABLE) {
      return Error(CIUIC_UNAVAILABLE,
                   text + "; rank " + std::to_string(global) +
                       " gave up: " + said->substr(said->find(' ') + 1),
                   global);
    }
    deadline_passed = deadline_passed || code == CIUIC_DEADLINE;
  }
  if (const auto dead = find_dead(cause)) {
    return *dead;
  }
  const int32_t code = deadline_passed ? int32_t{CIUIC_DEADLINE} : cause.code();
  if (silent.empty()) {
    return Error(code, text, cause.peer());
  }
  return Error(code, text + "; no sign of " + name_ranks(silent) + known, silent.front());
}

// ---- the end ----

void Session::say_goodbye(Milliseconds limit) {
  const auto said = std::make_shared<std::promise<void>>();
  auto heard = said->get_future();
  try {
    group_->barrier(limit, [said](const Error*) { said->set_value(); });
    heard.wait_for(limit + kSlack);
  } catch (const Error&) {
    // the peers have left already
  }
}

void Session::close(Milliseconds goodbye) {
  if (!group_) {
    return;
  }
  Lock lock(mutex_);
  const bool idle = live_.empty();
  const bool healthy = !broken_;
  lock.unlock();
  if (!idle) {
    fail(Error(CIUIC_CANCELLED, "gloo: the group was destroyed with operations under way"), 0ns,
         true);
  } else if (healthy) {
    say_goodbye(goodbye);
  }
  lock.lock();
  closing_ = true;
  attention_.notify_all();
  lock.unlock();
  monitor_.join();
  if (reporter_.joinable()) {
    reporter_.join();
  }
  release_group();
}

void Session::release_group() {
  if (!broken_) {
    group_.reset();
    return;
  }
  // Gloo's threads are let go by the closed connections; should one hang all the same, it is left
  // behind.
  std::promise<void> gone;
  const auto released = gone.get_future();
  quiet_thread([group = std::move(group_), gone = std::move(gone)]() mutable {
    group.reset();
    gone.set_value();
  }).detach();
  released.wait_for(2s);
}

}  // namespace ciuic::plugins::gloo
