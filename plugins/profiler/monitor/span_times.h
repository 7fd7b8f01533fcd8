// SPDX-License-Identifier: MIT
//
// Adds up how long spans of each category take. Lock-free and of fixed size: a span that finds its
// slot taken is counted as lost and not timed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <ciuic/abi/profiler.h>

namespace ciuic::plugins::monitor {

class SpanTimes {
 public:
  static constexpr uint32_t kCategories = 16;

  void begin(const ciuic_event& e) noexcept {
    if (e.id == 0 || e.category >= kCategories) {
      return;
    }
    // A span inside one of its own category is part of it already.
    const Slot& parent = slot(e.parent);
    const bool is_inner = e.parent != 0 && parent.id.load(std::memory_order_acquire) == e.parent &&
                          parent.category.load(std::memory_order_relaxed) == e.category;
    Slot& s = slot(e.id);
    uint64_t empty = 0;
    if (!s.id.compare_exchange_strong(empty, kBusy, std::memory_order_acquire)) {
      lost_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    s.category.store(e.category, std::memory_order_relaxed);
    s.is_counted.store(!is_inner, std::memory_order_relaxed);
    s.begin_ns.store(e.time_ns, std::memory_order_relaxed);
    s.id.store(e.id, std::memory_order_release);
  }

  void end(const ciuic_event& e) noexcept {
    Slot& s = slot(e.id);
    if (e.id == 0 || s.id.load(std::memory_order_acquire) != e.id) {
      return;
    }
    const uint64_t begin_ns = s.begin_ns.load(std::memory_order_relaxed);
    if (s.is_counted.load(std::memory_order_relaxed) && e.time_ns > begin_ns) {
      total_ns_[s.category.load(std::memory_order_relaxed)].fetch_add(e.time_ns - begin_ns,
                                                                      std::memory_order_relaxed);
    }
    s.id.store(0, std::memory_order_release);
  }

  /// Since the last take of this category.
  uint64_t take_ns(uint32_t category) noexcept {
    return total_ns_[category].exchange(0, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kBusy = ~uint64_t{0};
  static constexpr uint32_t kSlots = 1024;  // spans open at once, as long as ids are dense

  struct Slot {
    std::atomic<uint64_t> id{0}, begin_ns{0};
    std::atomic<uint32_t> category{0};
    std::atomic<bool> is_counted{false};
  };
  Slot& slot(uint64_t id) noexcept { return slots_[id % kSlots]; }

  std::array<Slot, kSlots> slots_;
  std::array<std::atomic<uint64_t>, kCategories> total_ns_{};
  std::atomic<uint64_t> lost_{0};
};

}  // namespace ciuic::plugins::monitor
