// SPDX-License-Identifier: MIT
//
// What emit costs. The machine may be shared and busy: a limit is met when the best of several
// batches meets it, because noise only ever adds.
#include <algorithm>
#include <atomic>
#include <sys/resource.h>
#include <thread>

#include "bench.hpp"
#include "profiler_tests.hpp"

namespace ciuic::testing::profiler {
namespace {

constexpr double kMedianNs = 250;
constexpr double kTailNs = 5'000;  // the 99th percentile
constexpr int kBatches = 200;
constexpr double kBudgetSeconds = 4;

struct Cost {
  double median_ns = 1e18, tail_ns = 1e18;
};

/// Of single emits of one batch of steps.
Cost batch_cost(const Bench& bench, const std::vector<std::vector<ciuic_event>>& steps) {
  std::vector<double> ns;
  for (const auto& step : steps) {
    for (const ciuic_event& e : step) {
      const auto begin = Clock::now();
      bench.emit(e);
      ns.push_back(seconds_since(begin) * 1e9);
    }
  }
  std::sort(ns.begin(), ns.end());
  return {ns[ns.size() / 2], ns[ns.size() * 99 / 100]};
}

bool is_good(const Cost& cost, double patience) {
  return cost.median_ns <= kMedianNs * patience && cost.tail_ns <= kTailNs * patience;
}

/// The best of batches that go on until the limits are met.
Cost best_cost(const TestContext& context, Bench& bench) {
  std::vector<std::vector<ciuic_event>> steps;
  Cost best;
  const auto begin = Clock::now();
  for (int batch = 0; batch < kBatches && !is_good(best, context.patience) &&
                      seconds_since(begin) < kBudgetSeconds * context.patience;
       ++batch) {
    steps.clear();
    for (uint64_t i = 0; i < 10; ++i) {
      steps.push_back(step_events(bench, static_cast<uint64_t>(batch) * 10 + i + 1));
    }
    const Cost cost = batch_cost(bench, steps);
    best.median_ns = std::min(best.median_ns, cost.median_ns);
    best.tail_ns = std::min(best.tail_ns, cost.tail_ns);
  }
  return best;
}

void require_cheap(const TestContext& context, const Cost& cost, const std::string& when) {
  require(is_good(cost, context.patience),
          when + ", best of several batches: half of the emits took up to " +
              std::to_string(static_cast<int64_t>(cost.median_ns)) + " ns (limit " +
              std::to_string(static_cast<int64_t>(kMedianNs * context.patience)) +
              "), 99 % up to " + std::to_string(static_cast<int64_t>(cost.tail_ns)) +
              " ns (limit " + std::to_string(static_cast<int64_t>(kTailNs * context.patience)) +
              "). Do the work in a thread or at flush; drop when it falls behind.");
}

/// How often this thread slept of its own accord. A busy machine does not add to it.
int64_t sleeps() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace

void emit_cost(const TestContext& context) {
  Bench bench(context);
  require_cheap(context, best_cost(context, bench), "one event a call");
  bench.flush();
  bench.finish();
}

void emit_while_flushing(const TestContext& context) {
  Bench bench(context);
  const std::vector<ciuic_event> events = step_events(bench, 1);
  std::atomic<bool> is_over{false};
  std::atomic<int64_t> long_flushes{0};
  std::thread flusher([&] {
    while (!is_over) {
      const auto from = Clock::now();
      try {
        bench.flush(200'000'000);
      } catch (const Error&) {  // DEADLINE; what it is good for is another test
      }
      long_flushes += seconds_since(from) > 5e-3 ? 1 : 0;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  int64_t waits = 0;  // groups of emits that slept, and for long
  const auto begin = Clock::now();
  while (seconds_since(begin) < 0.5 || (seconds_since(begin) < 1.5 && long_flushes < 8)) {
    const int64_t before = sleeps();
    const auto from = Clock::now();
    for (size_t i = 0; i < 20; ++i) {
      bench.emit(events[i]);
    }
    waits += seconds_since(from) > 5e-3 && sleeps() > before ? 1 : 0;
  }
  is_over = true;
  flusher.join();
  // A short lock may be met now and then; one who waits for flushes meets them one after the other.
  require(waits < 5 || waits * 4 < long_flushes,
          "while another thread made " + std::to_string(long_flushes) +
              " flushes of 5 ms and more, emit slept for over 5 ms " + std::to_string(waits) +
              " times; emit may not wait for a flush");
  bench.flush();
  bench.finish();
}

void emit_threads(const TestContext& context) {
  Bench bench(context);
  constexpr int kThreads = 64;
  std::vector<std::vector<ciuic_event>> events;
  for (int t = 0; t < kThreads; ++t) {
    events.push_back(step_events(bench, static_cast<uint64_t>(t) + 1));
  }
  const auto begin = Clock::now();
  in_threads(kThreads, [&](int t) {
    for (int round = 0; round < 40; ++round) {
      for (ciuic_event e : events[static_cast<size_t>(t)]) {
        e.thread = static_cast<uint32_t>(t);
        bench.emit(e);
      }
      bench.emit(events[static_cast<size_t>(t)]);
    }
  });
  // A million calls: more than 20 us each is waiting, whatever the machine does besides.
  const double seconds = seconds_since(begin);
  require(seconds < 20 * context.patience,
          "64 threads, a million events: " + std::to_string(seconds) + " s, expected below 20");
  bench.flush();
  bench.finish();
}

void emit_bounded(const TestContext& context) {
  constexpr int kEvents = 1'000'000;
  constexpr int64_t kGrowth = 24 << 20;  // a million events in 24 bytes each
  Bench bench(context);
  const ciuic_str name = bench.names("span");
  uint64_t id = 0;
  const auto million = [&] {
    double best = 1e18;
    for (int part = 0; part < 10; ++part) {
      const auto begin = Clock::now();
      for (int i = 0; i < kEvents / 10; ++i) {  // spans that never end
        const uint32_t category = static_cast<uint32_t>(1 + id % 9);
        bench.emit(event(CIUIC_EVENT_BEGIN, category, name, id + 1, id));
        ++id;
      }
      best = std::min(best, seconds_since(begin) / (kEvents / 10) * 1e9);
    }
    return best;
  };
  million();  // buffers of fixed size fill up
  const int64_t before = resident_bytes();
  const double ns = million();
  const int64_t grown = resident_bytes() - before;
  require(grown < kGrowth, "the second million of events without a flush took " +
                               std::to_string(grown >> 20) +
                               " MiB more memory; keep a fixed number, drop the rest and count");
  require(ns < kTailNs * context.patience,
          "events without a flush took " + std::to_string(static_cast<int64_t>(ns)) +
              " ns each, best of ten stretches; drop when full, do not wait");
  bench.flush(20'000'000'000);
  bench.finish();
}

}  // namespace ciuic::testing::profiler
