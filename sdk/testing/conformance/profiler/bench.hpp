// SPDX-License-Identifier: MIT
//
// One profiler with the services of a host, and events to feed it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ciuic/abi/profiler.h>
#include <ciuic/testing/conformance.hpp>
#include <ciuic/testing/reference_metrics.hpp>
#include <ciuic/testing/reference_threads.hpp>

namespace ciuic::testing::profiler {

using Clock = std::chrono::steady_clock;

[[nodiscard]] double seconds_since(Clock::time_point begin);

/// Names as the host interns them: same pointer, same name, until destroy.
class Names {
 public:
  ciuic_str operator()(std::string text) { return to_str(names_.emplace_back(std::move(text))); }

 private:
  std::deque<std::string> names_;
};

/// An event with struct_size, time and thread filled in.
[[nodiscard]] ciuic_event event(uint32_t type, uint32_t category, ciuic_str name, uint64_t id = 0,
                                uint64_t parent = 0);

class Bench {
 public:
  /// `output`: the create arguments' folder for the instance's own files.
  explicit Bench(const TestContext& context, OptionValues own = {});
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  [[nodiscard]] uint64_t mask() const { return vt().mask(self()); }
  void emit(const std::vector<ciuic_event>& events) const;
  void emit(const ciuic_event& event) const { vt().emit(self(), {&event, 1, sizeof(ciuic_event)}); }
  /// Throws Error.
  void flush(int64_t timeout_ns = 5'000'000'000) const {
    host_.host().check(vt().flush(self(), timeout_ns));
  }
  [[nodiscard]] const PluginInstance& instance() const { return *instance_; }
  /// Destroys the instance; fails the test when something of the host stayed behind.
  void finish();

  [[nodiscard]] const TestHost& host() const { return host_; }
  Names names;

 private:
  [[nodiscard]] const ciuic_profiler_vt& vt() const {
    return instance_->table<ciuic_profiler_vt>();
  }
  [[nodiscard]] ciuic_instance* self() const { return instance_->self(); }

  TestHost host_;
  ReferenceThreads threads_{host_.host()};
  ReferenceMetrics metrics_;
  std::optional<PluginInstance> instance_;
};

/// A step as a training run emits it: spans in spans, counters, the step's end. About 20 events.
[[nodiscard]] std::vector<ciuic_event> step_events(Bench& bench, uint64_t step);

/// Runs `body` in `count` threads that start together.
void in_threads(int count, const std::function<void(int thread)>& body);
[[nodiscard]] int64_t resident_bytes();

}  // namespace ciuic::testing::profiler
