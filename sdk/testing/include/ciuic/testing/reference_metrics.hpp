// SPDX-License-Identifier: MIT
//
// "ciuic.metrics" that keeps what it is told.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <ciuic/abi/services.h>
#include <ciuic/testing/test_host.hpp>

namespace ciuic::testing {

class ReferenceMetrics {
 public:
  ReferenceMetrics() {
    table_.struct_size = sizeof(table_);
    table_.ctx = this;
    table_.mask = [](void*) { return ~uint64_t{0}; };
    table_.intern = [](void* ctx, ciuic_str s) {
      const std::lock_guard<std::mutex> lock(from(ctx).mutex_);
      return to_str(*from(ctx).names_.emplace(to_view(s)).first);
    };
    table_.new_ids = [](void* ctx, uint32_t count) {
      const std::lock_guard<std::mutex> lock(from(ctx).mutex_);
      return std::exchange(from(ctx).next_id_, from(ctx).next_id_ + count);
    };
    table_.emit = [](void* ctx, ciuic_array events) {
      const std::lock_guard<std::mutex> lock(from(ctx).mutex_);
      from(ctx).events_ += events.count;
    };
    table_.set = [](void* ctx, ciuic_str name, ciuic_str unit, double value) {
      const std::lock_guard<std::mutex> lock(from(ctx).mutex_);
      from(ctx).values_[std::string(to_view(name))] = {std::string(to_view(unit)), value};
    };
  }
  ReferenceMetrics(const ReferenceMetrics&) = delete;
  ReferenceMetrics& operator=(const ReferenceMetrics&) = delete;

  [[nodiscard]] const ciuic_metrics_service* table() const noexcept { return &table_; }

  /// Name to unit and last value.
  [[nodiscard]] std::map<std::string, std::pair<std::string, double>> values() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return values_;
  }
  [[nodiscard]] uint64_t events() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return events_;
  }

 private:
  static ReferenceMetrics& from(void* ctx) { return *static_cast<ReferenceMetrics*>(ctx); }

  ciuic_metrics_service table_{};
  mutable std::mutex mutex_;
  std::set<std::string> names_;
  std::map<std::string, std::pair<std::string, double>> values_;
  uint64_t next_id_ = 1;
  uint64_t events_ = 0;
};

}  // namespace ciuic::testing
