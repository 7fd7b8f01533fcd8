// SPDX-License-Identifier: MIT
#include "bench.hpp"

#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace ciuic::testing::profiler {

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

ciuic_event event(uint32_t type, uint32_t category, ciuic_str name, uint64_t id, uint64_t parent) {
  ciuic_event e{};
  e.struct_size = sizeof(e);
  e.type = type;
  e.category = category;
  e.thread = 1;
  e.id = id;
  e.parent = parent;
  e.time_ns = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
          .count());
  e.name = name;
  return e;
}

Bench::Bench(const TestContext& context, OptionValues own) {
  host_.offer("ciuic.threads", threads_.table());
  host_.offer("ciuic.metrics", metrics_.table());
  Seat seat;
  seat.output = context.scratch;
  instance_.emplace(context.create(host_, std::move(own), seat));
}

void Bench::emit(const std::vector<ciuic_event>& events) const {
  vt().emit(self(), to_array(events));
}

void Bench::finish() {
  instance_.reset();
  require(host_.balanced(), "after destroy the profiler still holds " +
                                std::to_string(host_.live_statuses()) + " statuses and " +
                                std::to_string(host_.live_bytes()) + " bytes of the host");
}

std::vector<ciuic_event> step_events(Bench& bench, uint64_t step) {
  constexpr uint64_t kSpans = 98;
  const uint64_t first = step * (kSpans + 2) + 1;
  const auto category = [](uint64_t i) {
    return static_cast<uint32_t>(CIUIC_CATEGORY_DATA + i % (CIUIC_CATEGORY_PLUGIN - 1));
  };
  static const char* const kNames[] = {"data", "forward", "backward", "optimizer", "all_reduce"};
  std::vector<ciuic_str> names;
  for (const char* name : kNames) {
    names.push_back(bench.names(name));
  }
  std::vector<ciuic_event> events;
  events.push_back(event(CIUIC_EVENT_BEGIN, CIUIC_CATEGORY_STEP, bench.names("step"), first));
  for (uint64_t i = 1; i <= kSpans; ++i) {
    const ciuic_str name = names[i % names.size()];
    events.push_back(event(CIUIC_EVENT_BEGIN, category(i), name, first + i, first));
    events.push_back(event(CIUIC_EVENT_END, category(i), name, first + i, first));
  }
  ciuic_event counter = event(CIUIC_EVENT_COUNTER, CIUIC_CATEGORY_MEMORY, bench.names("allocated"));
  counter.value = 1e9;
  events.push_back(counter);
  events.push_back(event(CIUIC_EVENT_END, CIUIC_CATEGORY_STEP, events.front().name, first));
  ciuic_event end = event(CIUIC_EVENT_STEP, CIUIC_CATEGORY_STEP, events.front().name);
  end.a = step;
  events.push_back(end);
  return events;
}

void in_threads(int count, const std::function<void(int thread)>& body) {
  std::atomic<int> waiting{count};
  std::exception_ptr thrown;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      --waiting;
      while (waiting > 0) {
        std::this_thread::yield();
      }
      try {
        body(t);
      } catch (...) {  // rethrown in the test's own thread
        const std::lock_guard<std::mutex> lock(mutex);
        thrown = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (thrown != nullptr) {
    std::rethrow_exception(thrown);
  }
}

int64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long long whole = 0;
  long long resident = 0;
  const bool is_read = file != nullptr && std::fscanf(file, "%lld %lld", &whole, &resident) == 2;
  if (file != nullptr) {
    std::fclose(file);
  }
  require(is_read, "cannot read /proc/self/statm");
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace ciuic::testing::profiler
