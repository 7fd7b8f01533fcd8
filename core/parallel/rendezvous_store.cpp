// SPDX-License-Identifier: MIT
#include "core/parallel/rendezvous_store.h"

#include <csignal>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <ciuic/error.hpp>

namespace ciuic::core {
namespace {

using namespace std::chrono_literals;

constexpr auto kCallLimit = 5s;  // for calls that have no deadline of their own

std::chrono::milliseconds until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

c10::intrusive_ptr<c10d::Store> open_store(const StoreAddress& address,
                                           Clock::time_point deadline) {
  if (!address.file.empty()) {
    auto store = c10::make_intrusive<c10d::FileStore>(address.file, address.world);
    store->setTimeout(kCallLimit);
    return store;
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(address.port);
  options.isServer = address.listen_socket >= 0;
  options.numWorkers = static_cast<size_t>(address.world);
  options.waitWorkers = false;
  options.timeout = until(deadline);
  if (options.isServer) {
    options.masterListenFd = address.listen_socket;
  }
  auto store = c10::make_intrusive<c10d::TCPStore>(address.host, options);
  store->setTimeout(kCallLimit);
  return store;
}

/// The first line of LibTorch's text; the rest is a stack.
std::string first_line(const std::exception& e) {
  const auto* error = dynamic_cast<const c10::Error*>(&e);
  const std::string text = error != nullptr ? error->what_without_backtrace() : e.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

/// Shared with the thread, which may outlive the store when a call to the server never returns.
struct BoundedStore::Server {
  StoreAddress address;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  bool closing = false;
  bool ended = false;
  c10::intrusive_ptr<c10d::Store> store;  // the thread's

  void loop() noexcept {
    sigset_t all;  // signals are the main thread's; threads of the store inherit this
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return closing || !jobs.empty(); });
      if (closing) {
        break;
      }
      const auto job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
    lock.unlock();
    store.reset();
    lock.lock();
    ended = true;
    changed.notify_all();
  }
};

BoundedStore::BoundedStore(const StoreAddress& address, Clock::time_point deadline)
    : server_(std::make_shared<Server>()) {
  server_->address = address;
  std::thread([server = server_] { server->loop(); }).detach();
  const bool open =
      run([deadline](Server& server) { server.store = open_store(server.address, deadline); },
          deadline + 1s);
  if (!open) {
    throw Error(CIUIC_UNAVAILABLE,
                "the rendezvous store at " + address.name +
                    " accepts connections but does not answer: is it another program?",
                0);
  }
}

BoundedStore::~BoundedStore() {
  std::unique_lock lock(server_->mutex);
  server_->closing = true;
  server_->changed.notify_all();
  server_->changed.wait_for(lock, 1s, [this] { return server_->ended; });
}

bool BoundedStore::run(Job job, Clock::time_point deadline) {
  struct Call {
    bool done = false;
    std::exception_ptr error;
  };
  const auto call = std::make_shared<Call>();
  std::unique_lock lock(server_->mutex);
  server_->jobs.emplace_back([server = server_, call, job = std::move(job)] {
    std::exception_ptr error;
    try {
      job(*server);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard done_lock(server->mutex);
    call->error = error;
    call->done = true;
    server->changed.notify_all();
  });
  server_->changed.notify_all();
  if (!server_->changed.wait_until(lock, deadline, [&] { return call->done; })) {
    return false;
  }
  lock.unlock();
  if (call->error) {
    try {
      std::rethrow_exception(call->error);
    } catch (const std::exception& e) {
      throw Error(CIUIC_UNAVAILABLE,
                  "the rendezvous store at " + server_->address.name + " failed: " + first_line(e),
                  0);
    }
  }
  return true;
}

void BoundedStore::must_run(Job job) {
  if (!run(std::move(job), Clock::now() + kCallLimit)) {
    throw Error(CIUIC_UNAVAILABLE,
                "the rendezvous store at " + server_->address.name + " does not answer", 0);
  }
}

void BoundedStore::set(const std::string& key, const std::string& value) {
  must_run([key, value](Server& server) { server.store->set(key, value); });
}

int64_t BoundedStore::add(const std::string& key, int64_t delta) {
  const auto result = std::make_shared<int64_t>(0);
  must_run([key, delta, result](Server& server) { *result = server.store->add(key, delta); });
  return *result;
}

bool BoundedStore::remove(const std::string& key) {
  const auto result = std::make_shared<bool>(false);
  must_run([key, result](Server& server) { *result = server.store->deleteKey(key); });
  return *result;
}

std::optional<std::string> BoundedStore::peek(const std::string& key, Clock::time_point deadline) {
  const auto result = std::make_shared<std::optional<std::string>>();
  const bool done = run(
      [key, result](Server& server) {
        if (server.store->check({key})) {
          *result = server.store->get_to_str(key);
        }
      },
      deadline);
  return done ? *result : std::nullopt;
}

std::optional<std::string> BoundedStore::get(const std::string& key, Clock::time_point deadline) {
  // Asking again and again, because a wait inside the store would hold up every other caller.
  for (auto pause = 100us;; pause = std::min<std::chrono::microseconds>(pause * 2, 5ms)) {
    const auto patience = std::max(deadline, Clock::now() + 20ms);  // a poll still gets its answer
    if (auto value = peek(key, patience)) {
      return value;
    }
    const auto now = Clock::now();
    if (now >= deadline) {
      return std::nullopt;
    }
    std::this_thread::sleep_until(std::min(now + pause, deadline));
  }
}

}  // namespace ciuic::core
