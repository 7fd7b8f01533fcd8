// SPDX-License-Identifier: MIT
//
// Profiler "monitor": is this process short of memory or of work? At each step it samples resident
// memory and processor time, puts them into the step's metrics line, and every so often logs one
// line that says where the time went:
//
//   step 50 rss=812MiB cpu=187% data=1% forward=31% backward=58% optimizer=6%
//   communication=9% checkpoint=0%
//
// Percentages are of the wall time since the last line; communication overlaps the others. cpu: 100
// % is one core.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <ciuic/abi/services.h>
#include <ciuic/profiler.hpp>

#include "process.h"
#include "span_times.h"

namespace ciuic::plugins::monitor {
namespace {

struct Part {
  uint32_t category;
  const char* name;
};
constexpr std::array<Part, 6> kParts{{{CIUIC_CATEGORY_DATA, "data"},
                                      {CIUIC_CATEGORY_FORWARD, "forward"},
                                      {CIUIC_CATEGORY_BACKWARD, "backward"},
                                      {CIUIC_CATEGORY_OPTIMIZER, "optimizer"},
                                      {CIUIC_CATEGORY_COMMUNICATION, "communication"},
                                      {CIUIC_CATEGORY_CHECKPOINT, "checkpoint"}}};

double now_seconds() noexcept {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

class Monitor final : public Profiler {
 public:
  static constexpr const char* name = "monitor";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "memory, processor time and parts of a step, from /proc";
  inline static const auto options = option_table(with_unit(
      option_count("every", 50, 1, 1'000'000'000, "Steps between two lines in the log"), "steps"));

  explicit Monitor(const Context& context)
      : Profiler(context),
        every_(static_cast<uint64_t>(context.options().i64("every"))),
        metrics_(host().find_service<ciuic_metrics_service>("ciuic.metrics")),
        last_step_(take_sample()),
        last_line_(last_step_) {}

  [[nodiscard]] uint64_t mask() const noexcept override {
    uint64_t bits = uint64_t{1} << CIUIC_CATEGORY_STEP;
    for (const Part& part : kParts) {
      bits |= uint64_t{1} << part.category;
    }
    return bits;
  }

  void emit(ArrayView<ciuic_event> events) noexcept override {
    for (const ciuic_event& e : events) {
      switch (e.type) {
        case CIUIC_EVENT_BEGIN:
          times_.begin(e);
          break;
        case CIUIC_EVENT_END:
          times_.end(e);
          break;
        case CIUIC_EVENT_STEP:
          end_step(e.a);
          break;
        default:
          break;
      }
    }
  }

  /// The last, shorter stretch of a run.
  void flush(int64_t) override {
    if (!in_step_.test_and_set(std::memory_order_acquire)) {
      if (steps_since_line_ > 0) {
        write_line(take_sample());
      }
      in_step_.clear(std::memory_order_release);
    }
  }

 private:
  struct Sample {
    double seconds;
    ProcessUse use;
  };

  Sample take_sample() const noexcept { return {now_seconds(), process_.sample()}; }
  static double cpu_percent(const Sample& from, const Sample& to) noexcept {
    const double wall = to.seconds - from.seconds;
    return wall > 0 ? 100 * (to.use.cpu_seconds - from.use.cpu_seconds) / wall : 0;
  }

  void end_step(uint64_t step) noexcept {
    if (in_step_.test_and_set(std::memory_order_acquire)) {
      return;  // another thread is at it: two steps at once have one sample
    }
    const Sample now = take_sample();
    set("cpu_percent", "%", cpu_percent(last_step_, now));
    set("process_rss_bytes", "bytes", static_cast<double>(now.use.rss_bytes));
    set("major_page_faults", "count",
        static_cast<double>(now.use.major_page_faults - last_step_.use.major_page_faults));
    last_step_ = now;
    step_ = step;
    ++steps_since_line_;
    if (step % every_ == 0) {
      write_line(now);
    }
    in_step_.clear(std::memory_order_release);
  }

  void set(const char* key, const char* unit, double value) const noexcept {
    if (metrics_ != nullptr) {
      metrics_->set(metrics_->ctx, to_str(key), to_str(unit), value);
    }
  }

  void write_line(const Sample& now) noexcept {
    const double wall_ns = (now.seconds - last_line_.seconds) * 1e9;
    char text[512];
    int size = std::snprintf(text, sizeof(text), "step %llu rss=%lldMiB cpu=%.0f%%",
                             static_cast<unsigned long long>(step_),
                             static_cast<long long>(now.use.rss_bytes >> 20),
                             cpu_percent(last_line_, now));
    for (const Part& part : kParts) {
      const auto spent = static_cast<double>(times_.take_ns(part.category));
      size += std::snprintf(text + size, sizeof(text) - static_cast<size_t>(size), " %s=%.0f%%",
                            part.name, wall_ns > 0 ? 100 * spent / wall_ns : 0);
    }
    if (times_.lost() > 0) {
      size += std::snprintf(text + size, sizeof(text) - static_cast<size_t>(size), " lost=%llu",
                            static_cast<unsigned long long>(times_.lost()));
    }
    host().info({text, static_cast<size_t>(size)});
    last_line_ = now;
    steps_since_line_ = 0;
  }

  uint64_t every_;
  const ciuic_metrics_service* metrics_;
  ProcessSampler process_;
  SpanTimes times_;
  std::atomic_flag in_step_ = ATOMIC_FLAG_INIT;  // guards what follows
  Sample last_step_;
  Sample last_line_;
  uint64_t step_ = 0;
  uint64_t steps_since_line_ = 0;
};

}  // namespace
}  // namespace ciuic::plugins::monitor

CIUIC_PLUGINS(ciuic::plugins::monitor::Monitor)
