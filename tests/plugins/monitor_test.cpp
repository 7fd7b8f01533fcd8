// SPDX-License-Identifier: MIT
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/testing/reference_metrics.hpp>

#include "plugins.h"

namespace ciuic::testing {
namespace {

using ::testing::HasSubstr;

class Monitor : public ::testing::Test {
 protected:
  Monitor() { host.offer("ciuic.metrics", metrics.table()); }
  PluginInstance make(int64_t every) const { return plugin.create(host, {{"every", every}}); }

  static ciuic_event event(uint32_t type, uint32_t category, uint64_t id, uint64_t time_ns,
                           uint64_t parent = 0) {
    ciuic_event e{};
    e.struct_size = sizeof(e);
    e.type = type;
    e.category = category;
    e.id = id;
    e.parent = parent;
    e.time_ns = time_ns;
    return e;
  }
  static void emit(const PluginInstance& monitor, const std::vector<ciuic_event>& events) {
    monitor.table<ciuic_profiler_vt>().emit(monitor.self(), to_array(events));
  }
  static void step(const PluginInstance& monitor, uint64_t number) {
    ciuic_event e = event(CIUIC_EVENT_STEP, CIUIC_CATEGORY_STEP, 0, 0);
    e.a = number;
    emit(monitor, {e});
  }
  size_t lines() const { return host.logs().size(); }
  std::string last_line() const { return host.logs().back().message; }
  /// The number after `key=` in the last line.
  double value(const std::string& key) const {
    const std::string line = last_line();
    return std::stod(line.substr(line.find(key + "=") + key.size() + 1));
  }
  static void use_processor(std::clock_t ticks) {
    const std::clock_t end = std::clock() + ticks;
    while (std::clock() < end) {
    }
  }

  ReferenceMetrics metrics;
  TestHost host;
  LoadedPlugin plugin = load_plugin("monitor");
};

TEST_F(Monitor, ListensToStepsAndTheirParts) {
  const PluginInstance monitor = make(1);
  const uint64_t mask = monitor.table<ciuic_profiler_vt>().mask(monitor.self());
  for (uint32_t category = CIUIC_CATEGORY_STEP; category <= CIUIC_CATEGORY_CHECKPOINT; ++category) {
    EXPECT_NE(mask & (uint64_t{1} << category), 0U) << category;
  }
  EXPECT_EQ(mask & (uint64_t{1} << CIUIC_CATEGORY_MEMORY), 0U);
}

TEST_F(Monitor, SetsMetricsAtEachStep) {
  const PluginInstance monitor = make(1000);
  use_processor(CLOCKS_PER_SEC / 50);
  step(monitor, 1);
  const auto values = metrics.values();
  EXPECT_EQ(values.at("cpu_percent").first, "%");
  EXPECT_GT(values.at("cpu_percent").second, 0);
  EXPECT_EQ(values.at("process_rss_bytes").first, "bytes");
  EXPECT_GT(values.at("process_rss_bytes").second, 1 << 20);
  EXPECT_GE(values.at("major_page_faults").second, 0);
  EXPECT_EQ(lines(), 0U);
}

TEST_F(Monitor, LogsALineEverySoManySteps) {
  const PluginInstance monitor = make(3);
  for (uint64_t s = 1; s <= 7; ++s) {
    step(monitor, s);
  }
  ASSERT_EQ(lines(), 2U);
  EXPECT_THAT(last_line(), HasSubstr("step 6 rss="));
  EXPECT_THAT(last_line(), HasSubstr("MiB cpu="));
  monitor.check(monitor.table<ciuic_profiler_vt>().flush(monitor.self(), 0));
  ASSERT_EQ(lines(), 3U) << "flush writes the rest";
  EXPECT_THAT(last_line(), HasSubstr("step 7"));
  monitor.check(monitor.table<ciuic_profiler_vt>().flush(monitor.self(), 0));
  EXPECT_EQ(lines(), 3U);
}

TEST_F(Monitor, AddsUpThePartsOfAStep) {
  const PluginInstance monitor = make(1);
  step(monitor, 1);
  // Two spans, the first with one of its own category inside and, in that, one of another. Far
  // longer than the real time that passes, so that whole percents are exact enough: forward 200 +
  // 200 s, communication 100 s.
  const uint64_t s = 1'000'000'000;
  emit(monitor, {event(CIUIC_EVENT_BEGIN, CIUIC_CATEGORY_FORWARD, 1, 0),
                 event(CIUIC_EVENT_BEGIN, CIUIC_CATEGORY_FORWARD, 2, 20 * s, 1),
                 event(CIUIC_EVENT_BEGIN, CIUIC_CATEGORY_COMMUNICATION, 3, 30 * s, 2),
                 event(CIUIC_EVENT_END, CIUIC_CATEGORY_COMMUNICATION, 3, 130 * s),
                 event(CIUIC_EVENT_END, CIUIC_CATEGORY_FORWARD, 2, 190 * s),
                 event(CIUIC_EVENT_END, CIUIC_CATEGORY_FORWARD, 1, 200 * s),
                 event(CIUIC_EVENT_BEGIN, CIUIC_CATEGORY_FORWARD, 4, 300 * s),
                 event(CIUIC_EVENT_END, CIUIC_CATEGORY_FORWARD, 4, 500 * s)});
  step(monitor, 2);
  EXPECT_NEAR(value("forward") / value("communication"), 4, 0.05);
  EXPECT_EQ(value("backward"), 0);
  step(monitor, 3);
  EXPECT_EQ(value("forward"), 0) << "each line starts anew";
}

TEST_F(Monitor, SurvivesStraysAndFloods) {
  const PluginInstance monitor = make(1);
  emit(monitor,
       {event(CIUIC_EVENT_END, CIUIC_CATEGORY_FORWARD, 77, 5), event(CIUIC_EVENT_BEGIN, 9999, 5, 0),
        event(CIUIC_EVENT_BEGIN, CIUIC_CATEGORY_FORWARD, 0, 0), event(99, 99, 99, 99)});
  for (uint64_t id = 1; id <= 100'000; ++id) {  // never ended
    emit(monitor, {event(CIUIC_EVENT_BEGIN, CIUIC_CATEGORY_BACKWARD, id, id)});
  }
  step(monitor, 1);
  EXPECT_THAT(last_line(), HasSubstr("lost="));
}

TEST_F(Monitor, TakesEventsFromManyThreads) {
  const PluginInstance monitor = make(1);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 2000; ++i) {
        const uint64_t id = 1 + t + 8 * i;
        emit(monitor, {event(CIUIC_EVENT_BEGIN, CIUIC_CATEGORY_BACKWARD, id, 0),
                       event(CIUIC_EVENT_END, CIUIC_CATEGORY_BACKWARD, id, 100)});
        if (i % 500 == 0) {
          step(monitor, i + 1);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  step(monitor, 3);
  EXPECT_THAT(last_line(), HasSubstr("step 3"));
}

}  // namespace
}  // namespace ciuic::testing
