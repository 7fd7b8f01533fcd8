// SPDX-License-Identifier: MIT
//
// From create to destroy: quiesce, flush and its deadline, the mask.
#include <atomic>
#include <thread>

#include "bench.hpp"
#include "profiler_tests.hpp"

namespace ciuic::testing::profiler {
namespace {

constexpr double kGraceSeconds = 1;  // by which a deadline may be missed on a busy machine

}  // namespace

void life_without_events(const TestContext& context) {
  {
    Bench bench(context);
    bench.finish();
  }
  Bench bench(context);
  (void)bench.mask();
  bench.flush();
  bench.flush();
  bench.emit(std::vector<ciuic_event>());
  bench.flush();
  bench.finish();
}

void life_after_quiesce(const TestContext& context) {
  Bench bench(context);
  const ciuic_descriptor& descriptor = context.plugin.descriptor();
  bench.emit(step_events(bench, 1));
  bench.instance().quiesce();
  for (uint64_t step = 2; step < 60; ++step) {  // a straggler of another thread
    bench.emit(step_events(bench, step));
  }
  (void)bench.mask();
  try {
    bench.flush();
  } catch (const Error& e) {
    require(e.code() == CIUIC_PRECONDITION,
            std::string("flush after quiesce, expected success or precondition: ") + e.what());
  }
  if (descriptor.resume != nullptr) {
    bench.host().host().check(descriptor.resume(bench.instance().self()));
    bench.emit(step_events(bench, 60));
    bench.flush();
    bench.instance().quiesce();
    bench.emit(step_events(bench, 61));
  }
  bench.finish();
}

void life_spans_open(const TestContext& context) {
  Bench bench(context);
  const ciuic_str name = bench.names("open");
  for (uint64_t id = 1; id <= 10'000; ++id) {
    bench.emit(event(CIUIC_EVENT_BEGIN, static_cast<uint32_t>(1 + id % 9), name, id, id - 1));
  }
  bench.finish();
}

void mask_stable(const TestContext& context) {
  Bench bench(context);
  for (uint64_t step = 1; step <= 5; ++step) {
    const uint64_t mask = bench.mask();
    const std::vector<ciuic_event> events = step_events(bench, step);
    std::atomic<bool> is_same{true};
    in_threads(8, [&](int) {
      for (size_t i = 0; i + 1 < events.size(); ++i) {  // all but the step's end
        bench.emit(events[i]);
        is_same = is_same && bench.mask() == mask;
      }
    });
    require(is_same, "mask changed in the middle of step " + std::to_string(step) +
                         "; it is read again at each step, and counts until the next");
    bench.emit(events.back());
  }
}

void flush_deadline(const TestContext& context) {
  Bench bench(context);
  for (uint64_t step = 1; step <= 1000; ++step) {
    bench.emit(step_events(bench, step));
  }
  for (const int64_t timeout_ns : {int64_t{0}, int64_t{50'000'000}, int64_t{0}}) {
    const auto begin = Clock::now();
    try {
      bench.flush(timeout_ns);
    } catch (const Error& e) {
      require(e.code() == CIUIC_DEADLINE, std::string("flush: ") + e.what());
    }
    const double seconds = seconds_since(begin);
    const double limit = static_cast<double>(timeout_ns) * 1e-9 + kGraceSeconds * context.patience;
    require(seconds < limit, "flush with a timeout of " + std::to_string(timeout_ns / 1'000'000) +
                                 " ms came back after " + std::to_string(seconds) + " s");
  }
  bench.flush(-1);
  bench.finish();
}

void profiler_soak(const TestContext& context) {
  Bench bench(context);
  std::atomic<bool> is_over{false};
  std::thread flusher([&] {
    while (!is_over) {
      try {
        bench.flush(100'000'000);
      } catch (const Error&) {  // DEADLINE
      }
    }
  });
  std::vector<std::vector<ciuic_event>> events;
  for (uint64_t t = 0; t < 16; ++t) {
    events.push_back(step_events(bench, t + 1));
  }
  const auto begin = Clock::now();
  const auto run_for = [&](double seconds) {
    const auto from = Clock::now();
    in_threads(16, [&](int t) {
      while (seconds_since(from) < seconds) {
        bench.emit(events[static_cast<size_t>(t)]);
      }
    });
    return resident_bytes();
  };
  const int64_t warm = run_for(context.soak_seconds / 4);
  int64_t last = warm;
  while (seconds_since(begin) < context.soak_seconds) {
    last = run_for(context.soak_seconds / 4);
  }
  is_over = true;
  flusher.join();
  require(last - warm < (64 << 20), "memory grew by " + std::to_string((last - warm) >> 20) +
                                        " MiB after the first quarter of the soak");
  bench.flush(-1);
  bench.finish();
}

}  // namespace ciuic::testing::profiler
