// SPDX-License-Identifier: MIT
#include "core/plugin/events.h"

#include <gtest/gtest.h>

#include <ciuic/view.hpp>

namespace ciuic::core {
namespace {

struct EventsTest : ::testing::Test {
  Log log{Log::Options{0, 1, LogLevel::Off, "", false}};
  Events events;
};

TEST_F(EventsTest, NobodyListensAtFirst) {
  EXPECT_FALSE(events.wants(CIUIC_CATEGORY_STEP));
  const Span span(events, CIUIC_CATEGORY_STEP, "nothing happens");
}

TEST_F(EventsTest, InternedNamesAreOnePointer) {
  const ciuic_str a = events.intern("forward");
  EXPECT_EQ(a.data, events.intern(std::string("for") + "ward").data);
  EXPECT_NE(a.data, events.intern("backward").data);
}

TEST_F(EventsTest, FieldsAreTakenOnce) {
  const ciuic_metrics_service& s = events.service();
  s.set(s.ctx, to_str("cpu_percent"), to_str("%"), 42.0);
  EXPECT_EQ(events.take_fields().at("cpu_percent"), 42.0);
  EXPECT_TRUE(events.take_fields().empty());
}

TEST_F(EventsTest, AProfilersMaskDecidesWhatIsSent) {
  const Catalog catalog({std::string(CIUIC_BUILD_DIR) + "/plugins"});
  const FoundPlugin found = catalog.find(CIUIC_KIND_PROFILER, "monitor");
  std::vector<Problem> problems;
  const PluginOptions options =
      PluginOptions::from(nullptr, found.descriptor->options, "profiler.monitor", {}, problems);
  auto host = std::make_unique<HostContext>("monitor", log);
  host->add_service("ciuic.metrics", &events.service());
  const Instance monitor(found, std::move(host), options, {});
  events.add_profiler(monitor);
  EXPECT_TRUE(events.wants(CIUIC_CATEGORY_STEP));
  events.begin_step(1, 1);
  { const Span span(events, CIUIC_CATEGORY_FORWARD, "forward"); }
  events.begin_step(2, 1);
  EXPECT_FALSE(events.take_fields().empty());
  events.remove_profilers();
  EXPECT_FALSE(events.wants(CIUIC_CATEGORY_STEP));
}

}  // namespace
}  // namespace ciuic::core
