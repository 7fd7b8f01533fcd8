// SPDX-License-Identifier: MIT
#include "engine.h"

#include <csignal>
#include <sys/eventfd.h>
#include <unistd.h>

namespace ciuic::mutants {
namespace {

constexpr std::chrono::milliseconds kStep{20};

uint32_t dtype_code(ciuic_dtype d) { return d.code * 256U + d.bits; }

bool is_rooted(const Request& r) {
  return r.op == CIUIC_OP_REDUCE || r.op == CIUIC_OP_BROADCAST || r.op == CIUIC_OP_GATHER ||
         r.op == CIUIC_OP_SCATTER;
}

Header header_of(const Request& r, uint64_t key) {
  const bool is_pairwise = r.is_pairwise();
  const int64_t elements = r.op == CIUIC_OP_BROADCAST ? r.out_elements : r.in_elements;
  return {is_pairwise ? Header::kPairwise : Header::kCollective,
          r.op,
          r.reduce,
          dtype_code(r.dtype),
          is_pairwise ? r.tag : key,
          static_cast<uint64_t>(elements),
          r.vote,
          static_cast<uint32_t>(is_rooted(r) ? r.peer : 0),
          0};
}

std::thread quiet_thread(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

void run(const std::vector<std::function<void()>>& calls) {
  for (const auto& call : calls) {
    call();
  }
}

}  // namespace

Engine::Engine(Host host, const Behaviour& behaviour, std::unique_ptr<Mesh> mesh)
    : host_(host),
      behaviour_(behaviour),
      mesh_(std::move(mesh)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  start_thread();
}

void Engine::start_thread() {
  stopping_ = false;
  if (behaviour_.has_thread()) {
    thread_ = quiet_thread([this] {
      for (Lock lock(mutex_); !stopping_; lock.lock()) {
        lock.unlock();
        pump(kStep);
      }
    });
  }
}

void Engine::stop_thread() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof(one));
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Engine::pause() { stop_thread(); }
void Engine::resume() {
  if (stopping_) {
    start_thread();
  }
}

Engine::~Engine() { ::close(wake_); }

std::shared_ptr<Batch> Engine::submit(std::vector<Request> requests) {
  auto batch = std::make_shared<Batch>(host_);
  Calls calls;
  {
    const Lock lock(mutex_);
    if (broken_) {
      throw broken();
    }
    if (stopping_) {
      throw Error(CIUIC_PRECONDITION, "the group is quiesced");
    }
    batch->remaining = requests.size() + 1;
    for (Request& r : requests) {
      start(std::move(r), batch);
    }
    mesh_->transfer();
    if (--batch->remaining == 0) {
      calls.emplace_back([batch] { batch->done.finish(); });
    }
    if (!behaviour_.has_thread()) {
      take_messages();
      complete_what_can(calls);
    }
  }
  run(calls);
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof(one));
  return batch;
}

void Engine::start(Request request, const std::shared_ptr<Batch>& batch) {
  const uint64_t key = request.is_pairwise() ? 0 : next_++;
  const Header header = header_of(request, key);
  const auto deadline = Clock::now() + std::chrono::nanoseconds(request.timeout_ns);
  if (request.op == CIUIC_OP_SEND) {  // the bytes are ours now: done
    const std::string bytes = payload(request, request.peer);
    if (request.peer == mesh_->rank()) {
      parcels_[{request.peer, request.tag}].push_back({header, bytes});
    } else {
      mesh_->send(request.peer, header, bytes);
    }
    --batch->remaining;
    return;
  }
  for (int r = 0; r < mesh_->world() && request.op != CIUIC_OP_RECV; ++r) {
    std::string bytes = payload(request, r);
    if (r == mesh_->rank()) {
      Header own = header;
      own.bytes = bytes.size();
      file_message(r, {own, std::move(bytes)});
    } else {
      mesh_->send(r, header, bytes);
    }
  }
  pending_.push_back({std::move(request), key, deadline, batch});
}

void Engine::pump(std::chrono::milliseconds limit) {
  const std::lock_guard pumping(pumping_);
  std::vector<pollfd> ready;
  {
    const Lock lock(mutex_);
    ready = mesh_->interests();
    for (const Pending& p : pending_) {
      limit =
          std::min(limit, std::chrono::ceil<std::chrono::milliseconds>(p.deadline - Clock::now()));
    }
  }
  ready.push_back({wake_, POLLIN, 0});
  poll(ready.data(), ready.size(), static_cast<int>(std::max<int64_t>(limit.count(), 0)));
  uint64_t number = 0;
  (void)!read(wake_, &number, sizeof(number));
  Calls calls;
  {
    const Lock lock(mutex_);
    mesh_->transfer();
    take_messages();
    complete_what_can(calls);
    look_for_failures(calls);
  }
  run(calls);
}

void Engine::take_messages() {
  for (int r = 0; r < mesh_->world(); ++r) {
    while (auto message = mesh_->receive(r)) {
      file_message(r, std::move(*message));
    }
  }
}

void Engine::file_message(int from, Message message) {
  if (message.header.kind == Header::kPairwise) {
    parcels_[{from, message.header.key}].push_back(std::move(message));
  } else if (message.header.kind == Header::kCollective) {
    Arrived& arrived = arrived_[message.header.key];
    arrived.messages.resize(static_cast<size_t>(mesh_->world()));
    arrived.order.push_back(from);
    arrived.messages[static_cast<size_t>(from)] = std::move(message);
  } else if (message.header.kind == Header::kAborted && !broken_) {
    broken_.emplace(CIUIC_UNAVAILABLE,
                    "rank " + std::to_string(mesh_->peer(from).global_rank) + " aborted the group",
                    mesh_->peer(from).global_rank);
  }
}

// ---- completion ----

void Engine::complete_what_can(Calls& calls) {
  for (auto p = pending_.begin(); p != pending_.end() && !broken_;) {
    try {
      const bool is_done =
          p->request.op == CIUIC_OP_RECV ? try_receive(*p, calls) : try_complete(*p, calls);
      p = is_done ? pending_.erase(p) : std::next(p);
    } catch (const Error& e) {
      break_all(e, calls);
      return;
    }
  }
}

bool Engine::try_receive(Pending& p, Calls& calls) {
  auto& waiting = parcels_[{p.request.peer, p.request.tag}];
  if (waiting.empty()) {
    return false;
  }
  const auto chosen = waiting.begin() + static_cast<std::ptrdiff_t>(behaviour_.choose_message(
                                            waiting.size(), num_taken_++));
  const Message message = std::move(*chosen);
  waiting.erase(chosen);
  if (behaviour_.checks_peers() &&
      (static_cast<int64_t>(message.bytes.size()) != p.request.out_elements * p.request.width ||
       message.header.dtype != dtype_code(p.request.dtype))) {
    throw Error(CIUIC_INVALID, p.request.what + ": the sender has other bytes or another type");
  }
  behaviour_.place(p.request, p.request.peer, message.bytes);
  behaviour_.finish(p.request);
  p.batch->votes |= message.header.vote | p.request.vote;
  end_one(p, std::nullopt, calls);
  return true;
}

bool Engine::try_complete(Pending& p, Calls& calls) {
  const auto found = arrived_.find(p.key);
  if (found == arrived_.end() || found->second.order.size() < static_cast<size_t>(mesh_->world())) {
    return false;
  }
  const Arrived& arrived = found->second;
  if (behaviour_.checks_peers()) {
    check_arrived(p.request, arrived);
  }
  write_output(p.request, arrived);
  behaviour_.finish(p.request);
  for (const auto& message : arrived.messages) {
    p.batch->votes |= message->header.vote;
  }
  arrived_.erase(found);
  end_one(p, std::nullopt, calls);
  return true;
}

void Engine::check_arrived(const Request& r, const Arrived& arrived) const {
  const Header own = header_of(r, 0);
  for (int from = 0; from < mesh_->world(); ++from) {
    const Header& other = arrived.messages[static_cast<size_t>(from)]->header;
    const bool may_differ =
        r.op != CIUIC_OP_ALL_REDUCE && r.op != CIUIC_OP_REDUCE && r.op != CIUIC_OP_BROADCAST;
    if (other.op != own.op || other.reduce != own.reduce || other.dtype != own.dtype ||
        other.root != own.root || (!may_differ && other.elements != own.elements) ||
        static_cast<int64_t>(other.bytes) != expected_bytes(r, from)) {
      throw Error(CIUIC_INVALID,
                  r.what + ": rank " + std::to_string(mesh_->peer(from).global_rank) +
                      " submits something else: op " + std::to_string(other.op) + ", " +
                      std::to_string(other.elements) + " elements, " + std::to_string(other.bytes) +
                      " bytes for this rank, which expects " +
                      std::to_string(expected_bytes(r, from)));
    }
  }
}

void Engine::write_output(const Request& r, const Arrived& arrived) const {
  if (!r.has_result() || r.op == CIUIC_OP_BARRIER) {
    return;
  }
  if (!r.reduces()) {
    for (int from = 0; from < mesh_->world(); ++from) {
      if (r.op != CIUIC_OP_BROADCAST || from != r.rank) {
        behaviour_.place(r, from, arrived.messages[static_cast<size_t>(from)]->bytes);
      }
    }
    return;
  }
  std::vector<const char*> inputs;
  for (const int from : behaviour_.order(arrived.order)) {
    inputs.push_back(arrived.messages[static_cast<size_t>(from)]->bytes.data());
  }
  behaviour_.reduce(r, inputs, expected_bytes(r, r.rank) / r.width, r.out);
}

void Engine::end_one(const Pending& p, const std::optional<Error>& error, Calls& calls) const {
  if (--p.batch->remaining == 0 && !error) {
    calls.emplace_back([batch = p.batch] { batch->done.finish(); });
  } else if (error) {
    calls.emplace_back([batch = p.batch, e = behaviour_.report(*error)] { batch->done.fail(e); });
  }
}

// ---- failure ----

Error Engine::broken() const {  // with a text of its own: copies of an exception share theirs
  return Error(broken_->code(), std::string(broken_->what()), broken_->peer());
}

int Engine::first_missing(const Pending& p) const {
  const auto found = arrived_.find(p.key);
  for (int r = 0; r < mesh_->world(); ++r) {
    const bool is_missing =
        p.request.op == CIUIC_OP_RECV
            ? r == p.request.peer
            : found == arrived_.end() || !found->second.messages[static_cast<size_t>(r)];
    if (is_missing && r != mesh_->rank()) {
      return r;
    }
  }
  return -1;
}

void Engine::look_for_failures(Calls& calls) {
  std::optional<Error> error;
  for (int r = 0; r < mesh_->world(); ++r) {
    const Peer& peer = mesh_->peer(r);
    if (peer.has_closed && !peer.said_goodbye && !error) {
      error.emplace(CIUIC_UNAVAILABLE, "rank " + std::to_string(peer.global_rank) + " is gone",
                    peer.global_rank);
    }
  }
  for (const Pending& p : pending_) {
    const int missing = first_missing(p);
    const int32_t who = missing < 0 ? -1 : mesh_->peer(missing).global_rank;
    if (!error && missing >= 0 && mesh_->peer(missing).said_goodbye) {
      error.emplace(CIUIC_UNAVAILABLE,
                    p.request.what + ": rank " + std::to_string(who) + " has left the group", who);
    }
    if (!error && behaviour_.has_deadlines() && Clock::now() >= p.deadline) {
      error.emplace(CIUIC_DEADLINE, p.request.what + ": no sign of rank " + std::to_string(who),
                    who);
    }
  }
  if (broken_ && !pending_.empty()) {
    error.emplace(broken());
  }
  if (error) {
    break_all(*error, calls);
  }
}

void Engine::break_all(const Error& error, Calls& calls) {
  if (!broken_) {
    broken_.emplace(error);
  }
  for (const Pending& p : pending_) {
    end_one(p, broken(), calls);
  }
  pending_.clear();
}

void Engine::check() {
  const Lock lock(mutex_);
  if (broken_) {
    throw broken();
  }
}

void Engine::abort(const Error& error) {
  if (!behaviour_.is_abortable()) {
    return;
  }
  Calls calls;
  {
    const Lock lock(mutex_);
    if (!broken_) {
      say_to_all(Header::kAborted);
      mesh_->transfer();
    }
    break_all(error, calls);
  }
  run(calls);
}

// ---- the end ----

bool Engine::wait_idle(Clock::time_point deadline) {
  while (true) {
    {
      const Lock lock(mutex_);
      if (pending_.empty()) {
        return true;
      }
    }
    if (Clock::now() >= deadline) {
      return false;
    }
    if (thread_.joinable()) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    } else {
      pump(kStep);
    }
  }
}

void Engine::say_to_all(uint32_t kind) {
  for (int r = 0; r < mesh_->world(); ++r) {
    if (r != mesh_->rank()) {
      mesh_->send(r, {kind, 0, 0, 0, 0, 0, 0, 0, 0}, {});
    }
  }
}

void Engine::close() {
  Calls calls;
  {
    const Lock lock(mutex_);
    if (!pending_.empty()) {
      break_all(Error(CIUIC_CANCELLED, "the group is destroyed with work under way"), calls);
    }
    say_to_all(Header::kGoodbye);
  }
  run(calls);
  stop_thread();
  const auto deadline = Clock::now() + std::chrono::seconds(1);  // what peers still need
  while (mesh_->has_unsent() && Clock::now() < deadline) {
    std::vector<pollfd> ready = mesh_->interests();
    poll(ready.data(), ready.size(), 20);
    mesh_->transfer();
  }
}

}  // namespace ciuic::mutants
