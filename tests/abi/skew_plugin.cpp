// SPDX-License-Identifier: MIT
//
// A profiler that uses what is newer only after asking for it. Its counts go through the log.
#include <string>

#include <ciuic/profiler.hpp>

#include "skew.h"

namespace {

class Skewed final : public ciuic::Profiler {
 public:
  static constexpr const char* name = "skewed";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "counts what it can see";
  inline static const auto options =
      ciuic::option_table(ciuic::option_i64("every", 7, 1, 100, "Kept for the test"));

  explicit Skewed(const ciuic::Context& c) : Profiler(c) {
    if (c.options().i64("every") != 7) {
      throw ciuic::Error(CIUIC_INVALID, "every was not 7");
    }
#if defined(CIUIC_DOCTORED)
    const ciuic_host* table = c.host().table();
    counts_.host_clock = CIUIC_CAN(table, now) && table->now(table->ctx) != 0 ? 1 : 0;
    const auto* example = c.host().find_service<ciuic_example_service>("ciuic.example");
    counts_.service = example != nullptr && example->answer(example->ctx) == 42 ? 1 : 0;
#endif
  }
  uint64_t mask() const noexcept override { return ~uint64_t{0}; }
  void emit(ciuic::ArrayView<ciuic_event> events) noexcept override {
    for (const ciuic_event& e : events) {
      counts_.events += e.id;  // ids are 1
#if defined(CIUIC_DOCTORED)
      counts_.extras += CIUIC_HAS(&e, extra) && e.extra == 5 ? 1 : 0;
#endif
    }
  }
  void flush(int64_t) override {
    host().info(std::to_string(counts_.events) + " " + std::to_string(counts_.extras) + " " +
                std::to_string(counts_.annotations) + " " + std::to_string(counts_.host_clock) +
                " " + std::to_string(counts_.service));
  }

#if defined(CIUIC_DOCTORED)
  static const ciuic_profiler_vt& table() {
    static const ciuic_profiler_vt vt = [] {
      ciuic_profiler_vt t = Profiler::table();
      t.annotate = [](ciuic_instance* self, ciuic_str) -> ciuic_status* {
        ++ciuic::from_handle<Skewed>(self).counts_.annotations;
        return nullptr;
      };
      return t;
    }();
    return vt;
  }
#endif

 private:
  SkewCounts counts_{};
};

}  // namespace

CIUIC_PLUGINS(Skewed)
