// SPDX-License-Identifier: MIT
//
// Engine's other half: deadlines, dead and failed peers, abort. Whose fault it is stands in the memory
// of the group: every rank's counter says how far it came, and a rank that fails leaves its last words.
#include <algorithm>
#include <set>

#include "communicator/liveness.h"
#include "communicator/text.h"
#include "engine.h"

namespace ciuic::plugins::shm {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 100ms;
constexpr auto kPeerLook = 250ms;  // processes are looked at less often: it costs reading /proc

std::string name_of(int32_t rank) { return "rank " + std::to_string(rank); }

Error aborted(int32_t code) {
  return Error(code,
               "shm: the group was aborted by its owner (" + std::string(code_name(code)) + ")");
}

}  // namespace

// ---- how it is seen ----

/// With nothing left to move. The driver's.
void Engine::look_around() {
  if (const int32_t code = abort_code_.load(); code != CIUIC_OK) {
    return fail(aborted(code));
  }
  if (!is_at_work()) {
    return;
  }
  for (int r = 0; r < board_->world(); ++r) {
    if (r != board_->rank() && board_->state(r).life.load() == Life::Failed) {
      return fail(failure_of(r));
    }
  }
  const auto now = Clock::now();
  if (now >= next_look_.load()) {
    check_deadlines(now);
    check_peers(now);
  }
}

void Engine::check_deadlines(Clock::time_point now) {
  const Task* urgent = most_urgent();
  if (urgent != nullptr && urgent->deadline <= now) {
    return fail(late(*urgent));
  }
  next_look_ = urgent == nullptr ? now + kLook : std::min(now + kLook, urgent->deadline);
}

void Engine::check_peers(Clock::time_point now) {
  const Task* urgent = most_urgent();
  if (urgent == nullptr || now < next_peer_look_) {
    return;
  }
  next_peer_look_ = now + kPeerLook;
  const std::string what = urgent->request.what;
  if (const auto dead = find_dead(what)) {
    return fail(*dead);
  }
  for (int r = 0; r < board_->world(); ++r) {
    const bool has_left = board_->state(r).life.load() == Life::Left;
    // What it wrote before it left may have come after this turn's look.
    const bool is_missed = has_left && waits_for(r) && !messages_.advance() &&
                           (waiting_.empty() || !may_run(stage_)) && waits_for(r);
    if (is_missed) {
      const int32_t global = members_[static_cast<size_t>(r)].global_rank;
      return fail(
          Error(CIUIC_UNAVAILABLE, what + "; " + name_of(global) + " has left the group", global));
    }
  }
}

const Task* Engine::most_urgent() const {
  const Task* urgent = messages_.most_urgent();
  for (const Task& task : waiting_) {
    urgent = urgent == nullptr || task.deadline < urgent->deadline ? &task : urgent;
  }
  return urgent;
}

bool Engine::waits_for(int r) const {
  const uint64_t needed = num_stages_ - (stage_ == 0 && num_stages_ > 0 ? 1 : 0);
  const bool is_behind = !waiting_.empty() && board_->state(r).stages.load() < needed;
  return r != board_->rank() && (is_behind || messages_.has_open(r));
}

// ---- whose fault it is ----

std::optional<Error> Engine::find_dead(const std::string& what) const {
  for (int r = 0; r < board_->world(); ++r) {
    const Member& member = members_[static_cast<size_t>(r)];
    const Life life = board_->state(r).life.load();  // who has left or said why may go
    const bool may_go = life == Life::Left || life == Life::Failed;
    const std::string death = may_go ? "" : death_of(member.identity);
    if (!death.empty()) {
      return Error(CIUIC_UNAVAILABLE,
                   what + "; " + name_of(member.global_rank) + " is gone: " + death,
                   member.global_rank);
    }
  }
  return std::nullopt;
}

/// By what its last words say, unless somebody is dead.
Error Engine::failure_of(int r) const {
  const Task* urgent = most_urgent();
  const std::string what = urgent == nullptr ? "shm" : urgent->request.what;
  if (const auto dead = find_dead(what)) {
    return *dead;
  }
  const Error words = board_->last_words(r);
  const int32_t who = members_[static_cast<size_t>(r)].global_rank;
  const int32_t self = global_ranks_[static_cast<size_t>(board_->rank())];
  const bool waited = words.code() == CIUIC_DEADLINE || words.code() == CIUIC_UNAVAILABLE;
  if (!waited) {
    return Error(CIUIC_UNAVAILABLE, what + "; " + name_of(who) + " gave up: " + words.what(), who);
  }
  const int32_t culprit = words.peer() >= 0 && words.peer() != self ? words.peer() : who;
  return Error(words.code(), what + "; " + name_of(who) + " says: " + words.what(), culprit);
}

Error Engine::late(const Task& task) const {
  const Request& r = task.request;
  if (const auto dead = find_dead(r.what)) {
    return *dead;
  }
  std::vector<int32_t> silent;
  std::string stopped;
  const bool is_message = r.op == CIUIC_OP_SEND || r.op == CIUIC_OP_RECV;
  for (int p = 0; p < board_->world(); ++p) {
    if (is_message ? p == r.peer : waits_for(p)) {
      const Member& member = members_[static_cast<size_t>(p)];
      silent.push_back(member.global_rank);
      const std::string stop = stop_of(member.identity);
      stopped += stop.empty() ? "" : " (" + stop + ")";
    }
  }
  const std::string text = r.what + ": not done within " + to_seconds(r.timeout);
  return silent.empty()
             ? Error(CIUIC_DEADLINE, text)
             : Error(CIUIC_DEADLINE, text + "; no sign of " + name_ranks(silent) + stopped,
                     silent.front());
}

// ---- what follows ----

/// The driver's.
void Engine::fail(const Error& error) {
  {
    const std::lock_guard lock(incoming_mutex_);
    if (!broken_) {
      broken_.emplace(error.code(), std::string(error.what()), error.peer());
    }
  }
  take_incoming();  // the last that come
  board_->say_failed(error);
  std::set<std::shared_ptr<Batch>> batches;
  for (const Task& task : waiting_) {
    batches.insert(task.batch);
  }
  for (const Task& task : messages_.take_all()) {
    batches.insert(task.batch);
  }
  waiting_.clear();
  current_.reset();
  stage_ = 0;
  for (const auto& batch : batches) {
    ended_.push_back({batch, error});
  }
}

void Engine::abort(int32_t code) {
  int32_t running = CIUIC_OK;
  if (abort_code_.compare_exchange_strong(running, code)) {
    board_->say_failed(aborted(code));
    wake_own_thread();
    board_->ring(board_->rank());
  }
}

void Engine::check() const {
  const std::lock_guard lock(incoming_mutex_);
  refuse_if_broken();
}

void Engine::refuse_if_broken() const {
  if (broken_) {
    throw Error(broken_->code(), std::string(broken_->what()), broken_->peer());
  }
  if (const int32_t code = abort_code_.load(); code != CIUIC_OK) {
    throw aborted(code);
  }
}

void Engine::check_health() {
  check();
  const std::lock_guard lock(driving_);
  for (int r = 0; r < board_->world(); ++r) {
    if (r != board_->rank() && board_->state(r).life.load() == Life::Failed) {
      throw failure_of(r);
    }
  }
  if (const auto dead = find_dead("shm: health")) {
    throw *dead;
  }
}

}  // namespace ciuic::plugins::shm
