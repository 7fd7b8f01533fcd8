// SPDX-License-Identifier: MIT
#include "session.h"

#include <future>
#include <utility>

#include "communicator/quiet_thread.h"
#include "transfer.h"

namespace ciuic::plugins::gloo {
namespace {

using namespace std::chrono_literals;

constexpr auto kSlack = 200ms;  // Gloo's own timeout comes after ours
constexpr uint32_t kGoodbyeSignature = mix(0, 0x60);

}  // namespace

Session::Session(const Host& host) : host_(host) {}

Session::Session(const Host& host, Blame blame, std::unique_ptr<ProcessGroup> group)
    : host_(host), blame_(std::move(blame)), group_(std::move(group)) {
  monitor_ = quiet_thread([this] { monitor(); });
}

// ---- the way of an operation ----

Work Session::submit(std::vector<Operation> operations) {
  check();
  if (operations.empty()) {
    return {};
  }
  const auto batch = std::make_shared<Batch>(host_, operations.size());
  Work work = batch->work();
  std::vector<std::pair<uint64_t, Live*>> started;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (Operation& operation : operations) {
      const auto deadline = now + operation.timeout;
      const bool runs = operation.run != nullptr;
      Live& live = live_[next_id_];
      live = Live{std::move(operation), batch, deadline, runs, false};
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
  if (!live.running) {
    if (live.operation.finish) {
      live.operation.finish();
    }
    retire(id, std::nullopt);
    return;
  }
  const Milliseconds timeout = std::chrono::ceil<Milliseconds>(live.operation.timeout) + kSlack;
  // The function owns the memory that Gloo works in: it lives as long as Gloo keeps the callback.
  // Nothing of `live` is touched after the call, as it may have ended by then.
  const auto run = std::make_shared<const decltype(Operation::run)>(std::move(live.operation.run));
  try {
    (*run)(*group_, timeout, [self = shared_from_this(), id, run](const Error* error) {
      self->run_ended(id, error);
    });
  } catch (const Error& error) {
    run_ended(id, &error);
  }
}

void Session::run_ended(uint64_t id, const Error* error) {
  Lock lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end()) {
    return;  // abandoned
  }
  Live& live = found->second;
  if (error != nullptr) {
    const Error seen(error->code(), live.operation.what + ": " + error->what(), error->peer());
    const Failure failure{seen, live.operation.partners};
    const auto timeout = live.operation.timeout;
    live.running = false;
    live.failed = true;
    lock.unlock();
    fail(failure, timeout, false);
    lock.lock();
    if (const std::optional<Error> cause = final_) {
      lock.unlock();
      retire(id, cause);
    } else {
      attention_.notify_all();  // the monitor will
    }
    return;
  }
  live.running = false;
  const std::function<void()> finish = std::move(live.operation.finish);
  lock.unlock();
  if (finish) {
    finish();
  }
  retire(id, std::nullopt);
}

void Session::retire(uint64_t id, const std::optional<Error>& error) {
  Lock lock(mutex_);
  const auto node = live_.extract(id);
  if (node.empty()) {
    return;
  }
  if (broken_) {
    attention_.notify_all();
  }
  end_works(lock, {node.mapped().batch}, error);
}

/// Works call back without the lock; until they have, the session is not idle.
void Session::end_works(Lock& lock, const std::vector<std::shared_ptr<Batch>>& batches,
                        const std::optional<Error>& error) {
  ++ending_;
  lock.unlock();
  for (const auto& batch : batches) {
    batch->one_ended(error);
  }
  lock.lock();
  --ending_;
  ended_.notify_all();
}

void Session::check() const {
  const std::lock_guard lock(mutex_);
  if (broken_) {
    throw final_ ? *final_ : broken_->cause;
  }
}

bool Session::wait_idle(Clock::time_point deadline) const {
  Lock lock(mutex_);
  return ended_.wait_until(lock, deadline, [this] { return live_.empty() && ending_ == 0; });
}

// ---- the end ----

void Session::say_goodbye(Milliseconds limit) {
  const auto said = std::make_shared<std::promise<void>>();
  auto heard = said->get_future();
  try {
    group_->barrier(kGoodbyeSignature, limit, [said](const Error*) { said->set_value(); });
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
    fail({Error(CIUIC_CANCELLED, "gloo: the group was destroyed with operations under way"), {}},
         0ns, true);
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
