// SPDX-License-Identifier: MIT
//
// A step's events: a span with a counter inside, then the step itself.
#include <ciuic/testing/guarded_struct.hpp>

#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

class ProfilerExercise final : public Exercise {
 public:
  using Exercise::Exercise;

  std::string round(const Instance& p, uint64_t number) override {
    const auto& vt = p.table<ciuic_profiler_vt>();
    uint64_t mask = 0;
    p.calls().run("mask", [&] { mask = vt.mask(p.self()); });
    const uint64_t id = 2 * number + 1;
    const GuardedArray<ciuic_event> events(
        {event(CIUIC_EVENT_BEGIN, CIUIC_CATEGORY_FORWARD, id, number),
         event(CIUIC_EVENT_COUNTER, CIUIC_CATEGORY_MEMORY, 0, number),
         event(CIUIC_EVENT_END, CIUIC_CATEGORY_FORWARD, id, number)});
    p.calls().run("emit", [&] { vt.emit(p.self(), events.c()); });
    const GuardedArray<ciuic_event> step({event(CIUIC_EVENT_STEP, CIUIC_CATEGORY_STEP, 0, number)});
    p.calls().run("emit", [&] { vt.emit(p.self(), step.c()); });
    p.calls().check("flush", [&] { return vt.flush(p.self(), 10'000'000'000); });
    return bytes_of(&mask, sizeof(mask));
  }

 private:
  /// Names are interned: they live as long as the host.
  static ciuic_event event(uint32_t type, uint32_t category, uint64_t id, uint64_t number) {
    ciuic_event e{};
    e.struct_size = sizeof(e);
    e.type = type;
    e.category = category;
    e.thread = 1;
    e.id = id;
    e.time_ns = 1000 * number + type;
    e.a = number + 1;
    e.value = static_cast<double>(number);
    e.name = to_str("exercise");
    return e;
  }
};

}  // namespace

std::unique_ptr<Exercise> exercise_profiler(const TestContext& context, Bench& bench) {
  return std::make_unique<ProfilerExercise>(context, bench);
}

}  // namespace ciuic::testing::contract
