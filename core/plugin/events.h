// SPDX-License-Identifier: MIT
//
// Events from the host and from plugins to the profilers, and the "ciuic.metrics" service. Nothing
// listens: one atomic load.
//
// Thread rule: emit and the service are class A; add_profiler and begin_step belong to the control
// thread.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/profiler.h>
#include <ciuic/abi/services.h>

#include "core/plugin/instance.h"

namespace ciuic::core {

class Events {
 public:
  Events();

  [[nodiscard]] const ciuic_metrics_service& service() const noexcept { return service_; }
  /// The instance must outlive this object's last emit.
  void add_profiler(const Instance& profiler);
  void remove_profilers() noexcept;
  /// Re-reads the masks and tells profilers that a step begins.
  void begin_step(uint64_t step, uint64_t attempt);
  /// The last step that began; 0: none yet.
  [[nodiscard]] uint64_t step() const noexcept { return step_; }
  void flush(int64_t timeout_ns) noexcept;

  [[nodiscard]] bool wants(uint32_t category) const noexcept {
    return (mask_.load(std::memory_order_relaxed) >> category & 1) != 0;
  }
  void emit(const ciuic_event& event) noexcept;
  [[nodiscard]] uint64_t new_id() noexcept { return next_id_.fetch_add(1); }
  ciuic_str intern(std::string_view name);

  /// Fields that plugins set for this step's metrics line; cleared by the call.
  std::map<std::string, double> take_fields();

 private:
  static ciuic_metrics_service make_service(Events* self);

  ciuic_metrics_service service_;
  uint64_t step_ = 0;
  std::vector<const Instance*> profilers_;
  std::atomic<uint64_t> mask_{0};
  std::atomic<uint64_t> next_id_{1};
  std::mutex mutex_;  // names_ and fields_
  std::set<std::string, std::less<>> names_;
  std::map<std::string, double> fields_;
};

/// A BEGIN and END event around a scope.
class Span {
 public:
  Span(Events& events, uint32_t category, std::string_view name, uint64_t a = 0, uint64_t b = 0);
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span();

 private:
  Events& events_;
  ciuic_event event_{};
};

}  // namespace ciuic::core
