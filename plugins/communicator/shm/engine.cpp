// SPDX-License-Identifier: MIT
#include "engine.h"

#include <algorithm>
#include <new>
#include <utility>

#include "communicator/capabilities.h"
#include "communicator/quiet_thread.h"
#include "driven_work.h"
#include "futex.h"

namespace ciuic::plugins::shm {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 100ms;  // how often a driver looks for late and dead ranks
constexpr auto kSpin = 40us;   // about what it costs to put a core to sleep and wake it
constexpr int64_t kInlineBytes = 256
                                 << 10;  // up to here submit itself does what can be done at once

int64_t bytes_of(const Request& r) {
  int64_t bytes = 0;
  for (const auto* parts : {&r.in_parts, &r.out_parts}) {
    for (const Part& part : *parts) {
      bytes += part.bytes;
    }
  }
  return bytes;
}

}  // namespace

Engine::Engine(const Host& host, std::shared_ptr<Heap> heap, Team team)
    : host_(host),
      heap_(std::move(heap)),
      board_(std::move(team.board)),
      members_(std::move(team.members)),
      may_spin_(team.may_spin),
      messages_(*board_, [this](const Task& task) { task_ended(task); }) {
  for (const Member& member : members_) {
    global_ranks_.push_back(member.global_rank);
  }
  next_peer_look_ = Clock::now() + kLook;
  next_look_ = next_peer_look_;
  thread_ = quiet_thread([this] { run_own_thread(); });
}

Engine::~Engine() { close(); }

// ---- submit and wait ----

Work Engine::submit(std::vector<Request> requests) {
  if (requests.empty()) {
    check();
    return {};
  }
  const auto batch = std::make_shared<Batch>(host_, requests.size());
  const auto now = Clock::now();
  int64_t bytes = 0;
  {
    const std::lock_guard lock(incoming_mutex_);
    refuse_if_broken();
    for (Request& request : requests) {
      bytes += bytes_of(request);
      const auto deadline = now + request.timeout;
      incoming_.push_back({std::move(request), batch, deadline});
    }
    has_incoming_ = true;
    ++num_live_;
  }
  if (bytes <= kInlineBytes && driving_.try_lock()) {
    advance();
    driving_.unlock();
    tell_ended();
  }
  if (batch->has_ended && !batch->has_failed) {
    return {};
  }
  wake_own_thread();
  return make_driven_work(shared_from_this(), batch);
}

bool Engine::drive(const Batch& batch, Clock::time_point deadline) {
  return drive_until([&batch] { return batch.has_ended.load(); }, deadline);
}

bool Engine::drive_all(Clock::time_point deadline) {
  return drive_until([this] { return is_idle(); }, deadline);
}

template <typename Done>
bool Engine::drive_until(const Done& done, Clock::time_point deadline) {
  num_waiters_.fetch_add(1);
  bool in_time = true;
  while (!done() && in_time) {
    const uint32_t seen = board_->bell();
    advance_and_tell();
    if (!done()) {
      in_time = Clock::now() < deadline;
      if (in_time) {
        wait_for_bell(seen, deadline, may_spin_);
      }
    }
  }
  if (num_waiters_.fetch_sub(1) == 1 && !is_idle()) {
    wake_own_thread();
  }
  return done();
}

// ---- one turn of a driver ----

void Engine::advance_and_tell() {
  {
    const std::lock_guard lock(driving_);
    advance();
  }
  tell_ended();
}

void Engine::advance() {
  try {
    bool moved = true;
    while (moved && abort_code_.load(std::memory_order_relaxed) == CIUIC_OK) {
      take_incoming();
      moved = advance_collective();
      moved = messages_.advance() || moved;
    }
    look_around();
  } catch (const Error& error) {
    fail(error);
  } catch (const std::bad_alloc&) {
    fail(Error(CIUIC_EXHAUSTED, "shm: out of memory"));
  }
}

void Engine::take_incoming() {
  if (!has_incoming_.load(std::memory_order_acquire)) {
    return;
  }
  const std::lock_guard lock(incoming_mutex_);
  has_incoming_ = false;
  for (Task& task : incoming_) {
    next_look_ = std::min(next_look_.load(), task.deadline);
    if (is_message(task.request.op)) {
      messages_.post(std::move(task));
    } else {
      waiting_.push_back(std::move(task));
    }
  }
  incoming_.clear();
}

bool Engine::may_run(int64_t stage) const {
  const uint64_t needed = stage > 0 || num_stages_ == 0 ? num_stages_ : num_stages_ - 1;
  return board_->finished_by_all() >= needed;
}

/// One stage.
bool Engine::advance_collective() {
  if (waiting_.empty() || !may_run(stage_)) {
    return false;
  }
  if (current_ == nullptr) {
    const Workplace place{*board_, *heap_, global_ranks_, host_};
    current_ = make_collective(waiting_.front().request, num_collectives_++, place);
  }
  current_->run(stage_, num_stages_);
  const bool is_done = current_->is_last(stage_);
  ++stage_;
  board_->finish_stages(++num_stages_);
  if (is_done) {
    current_.reset();
    stage_ = 0;
    const Task task = std::move(waiting_.front());
    waiting_.pop_front();
    task_ended(task);
  }
  return true;
}

void Engine::task_ended(const Task& task) {
  if (--task.batch->remaining == 0) {
    ended_.push_back({task.batch, std::nullopt});
  }
}

/// Works call back without the lock.
void Engine::tell_ended() {
  std::vector<Ended> ended;
  {
    const std::lock_guard lock(driving_);
    ended.swap(ended_);
  }
  for (const Ended& e : ended) {
    if (e.error) {
      e.batch->has_failed = true;
      e.batch->done.fail(*e.error);
    } else {
      e.batch->done.finish();
    }
    e.batch->has_ended = true;
    --num_live_;
  }
  // Who waits for one of these may be about to sleep beside this thread: he was counted before he
  // looked at has_ended.
  if (!ended.empty() && num_waiters_ > 0) {
    board_->ring(board_->rank());
  }
}

void Engine::wait_for_bell(uint32_t seen, Clock::time_point until, bool may_spin) {
  const auto now = Clock::now();
  until = std::min({until, now + kLook, next_look_.load()});
  for (auto spun = now; may_spin && spun < std::min(now + kSpin, until); spun = Clock::now()) {
    for (int i = 0; i < 64; ++i) {
      if (board_->bell() != seen) {
        return;
      }
      relax();
    }
  }
  board_->sleep(seen, until - now);
}

// ---- the engine's own thread ----

void Engine::wake_own_thread() {
  const std::lock_guard lock(parking_mutex_);
  if (is_parked_) {
    parking_.notify_all();
  } else {
    board_->ring(board_->rank());
  }
}

void Engine::run_own_thread() {
  std::unique_lock lock(parking_mutex_);
  while (!is_closing_) {
    if (is_idle() || num_waiters_ > 0) {
      is_parked_ = true;
      parking_.wait(lock);
      is_parked_ = false;
      continue;
    }
    lock.unlock();
    const uint32_t seen = board_->bell();
    advance_and_tell();
    if (!is_idle() && num_waiters_ == 0) {
      wait_for_bell(seen, Clock::time_point::max(), false);
    }
    lock.lock();
  }
}

void Engine::close() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard lock(driving_);
    take_incoming();
    if (is_at_work()) {
      fail(Error(CIUIC_CANCELLED, "shm: the group was destroyed with operations under way"));
    }
  }
  tell_ended();
  {
    const std::lock_guard lock(parking_mutex_);
    is_closing_ = true;
    parking_.notify_all();
  }
  board_->ring(board_->rank());
  thread_.join();
  tell_ended();
  Life here = Life::Here;
  board_->state(board_->rank()).life.compare_exchange_strong(here, Life::Left);
  board_->ring_all();
}

}  // namespace ciuic::plugins::shm
