// SPDX-License-Identifier: MIT
//
// "tally": a small and right profiler, from which the mutants differ in one habit each. emit copies
// an event into a buffer of fixed size; when that is full, or someone else is at it, the event is
// dropped and counted.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ciuic/profiler.hpp>

#include "habits.h"

namespace ciuic::mutants::profiler {

class Tally : public Profiler {
 public:
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";

  Tally(const Context& context, Habits habits);
  ~Tally() override;
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  [[nodiscard]] uint64_t mask() const noexcept override;
  void emit(ArrayView<ciuic_event> events) noexcept override;
  void flush(int64_t timeout_ns) override;
  void quiesce(int64_t timeout_ns) override;
  void resume() override;

 private:
  struct Kept {
    uint64_t id, time_ns;
    uint32_t category, type;
    ciuic_str name;  // the host's until destroy
  };
  static constexpr size_t kCapacity = 8192;

  void keep(const ciuic_event& e) noexcept;
  void misbehave(const ciuic_event& e) noexcept;
  void add_up(const std::vector<Kept>& events);
  void write_row(const Kept& e);
  void start();
  void stop();
  void drain();

  Habits habits_;
  std::mutex mutex_;
  std::vector<Kept> buffer_;
  std::atomic<uint64_t> dropped_{0};
  std::atomic<bool> is_quiesced_{false};
  std::mutex totals_mutex_;  // one add_up at a time
  std::array<uint64_t, 16> totals_{};
  std::FILE* file_ = nullptr;
  // What only mutants use.
  std::vector<const ciuic_event*> pointers_;
  std::map<uint64_t, uint64_t> begun_;
  std::atomic<size_t> writers_{0};
  std::vector<Kept> everything_;
  mutable std::atomic<uint64_t> asked_{0};
  // The thread, where there is one.
  std::condition_variable wake_;
  bool is_over_ = false;
  std::thread thread_;
};

/// A plugin class per set of habits.
template <const Habits& kHabits>
class TallyOf final : public Tally {
 public:
  static constexpr const char* name = kHabits.name;
  static constexpr const char* summary = kHabits.what;
  static constexpr uint32_t flags = kHabits.has_thread ? CIUIC_FLAG_OWN_THREADS : 0;
  static constexpr std::array<const char*, 3> features{kHabits.writes_csv ? "output:csv" : nullptr,
                                                       kHabits.writes_csv ? "events:all" : nullptr,
                                                       nullptr};
  explicit TallyOf(const Context& context) : Tally(context, kHabits) {}
};

template <typename Change>
constexpr Habits changed(const char* name, const char* what, Change change) {
  Habits h;
  h.name = name;
  h.what = what;
  change(h);
  return h;
}

}  // namespace ciuic::mutants::profiler
