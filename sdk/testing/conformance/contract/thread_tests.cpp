// SPDX-License-Identifier: MIT
//
// While the exercise goes on in one thread, others call what may be called at any time: class Q and
// class A. Under a thread sanitizer this also finds races.
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include <ciuic/testing/guarded_struct.hpp>

#include "../runner_message.hpp"
#include "contract_tests.hpp"
#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

constexpr int kThreads = 4;
constexpr double kSeconds = 1;
constexpr int kCallsInARow = 2000;  // so that threads are mostly inside the plugin

/// One round of calls that may happen at any time.
using AnyTime = std::function<void(const Instance&, int thread)>;

void ask_communicator(const Instance& c) {
  const auto& vt = c.table<ciuic_communicator_vt>();
  uint64_t bits = 0;
  c.calls().check("capabilities", [&] {
    return vt.capabilities(c.self(), CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, kF32,
                           {CIUIC_DEVICE_CPU, 0}, &bits);
  });
  c.calls().check("health", [&] { return vt.health(c.self()); });
}

void ask_precision(const Instance& p) {
  const auto& vt = p.table<ciuic_precision_vt>();
  ciuic_dtype dtype{};
  p.calls().check("dtype_for", [&] {
    return vt.dtype_for(p.self(), to_str("model"), CIUIC_ROLE_VALUE, &dtype);
  });
  p.calls().run("hooks", [&] { vt.hooks(p.self(), 0, {CIUIC_DEVICE_CPU, 0}); });
}

void ask_profiler(const Instance& p) {
  const auto& vt = p.table<ciuic_profiler_vt>();
  ciuic_event e{};
  e.struct_size = sizeof(e);
  e.type = CIUIC_EVENT_INSTANT;
  e.category = CIUIC_CATEGORY_PLUGIN;
  e.name = to_str("any time");
  const std::vector<ciuic_event> events(8, e);
  p.calls().run("mask", [&] { vt.mask(p.self()); });
  p.calls().run("emit", [&] { vt.emit(p.self(), to_array(events)); });
}

/// Updates are class A: each thread has a shard of its own.
AnyTime update_shards(const TestContext& t, Bench& bench, const Instance& instance) {
  const auto shards = std::make_shared<std::vector<std::unique_ptr<Exercise>>>();
  for (int i = 0; i < kThreads; ++i) {
    shards->push_back(make_exercise(t, bench));
    shards->back()->start(instance);
  }
  return [shards](const Instance& o, int thread) {
    (*shards)[static_cast<size_t>(thread)]->round(o, 0);
  };
}

AnyTime any_time_calls(const TestContext& t, Bench& bench, const Instance& instance) {
  const auto alone = [](void (*ask)(const Instance&)) {
    return [ask](const Instance& i, int) { ask(i); };
  };
  switch (t.plugin.descriptor().kind) {
    case CIUIC_KIND_COMMUNICATOR:
      return alone(ask_communicator);
    case CIUIC_KIND_PRECISION:
      return alone(ask_precision);
    case CIUIC_KIND_PROFILER:
      return alone(ask_profiler);
    case CIUIC_KIND_OPTIMIZER:
      return update_shards(t, bench, instance);
    default:
      return nullptr;
  }
}

void validate_beside(const TestContext& t) {
  TestHost host;
  t.plugin.validate(host, t.options);
  for (uint32_t i = 0; i < 3; ++i) {
    (void)t.plugin.query(CIUIC_ABI_MAJOR, i);
  }
}

/// The first exception of any thread.
class FirstFailure {
 public:
  template <typename Body>
  void guard(Body body) {
    try {
      body();
    } catch (...) {  // carried to the test's own thread, and thrown there
      const std::lock_guard<std::mutex> lock(mutex_);
      if (first_ == nullptr) {
        first_ = std::current_exception();
      }
    }
  }
  void rethrow() const {
    if (first_ != nullptr) {
      std::rethrow_exception(first_);
    }
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace

void concurrent_calls(const TestContext& t) {
  Bench bench;
  const Calls calls(bench.host());
  Working work(t, bench, calls);
  const AnyTime any_time = any_time_calls(t, bench, work.instance);
  FirstFailure failure;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      failure.guard([&] {
        while (!stop.load()) {
          for (int n = 0; any_time && n < kCallsInARow && !stop.load(); ++n) {
            any_time(work.instance, i);
          }
          validate_beside(t);
        }
      });
    });
  }
  const int64_t deadline = now_ns() + static_cast<int64_t>(kSeconds * 1e9);
  failure.guard([&] {
    for (uint64_t i = 0; now_ns() < deadline; ++i) {
      work.round(i);
    }
  });
  stop.store(true);
  for (std::thread& thread : threads) {
    thread.join();
  }
  failure.rethrow();
  work.instance.destroy();
  require(bench.host().balanced(), "after calls from several threads: " + bench.host().imbalance());
}

}  // namespace ciuic::testing::contract
