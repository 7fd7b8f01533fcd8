// SPDX-License-Identifier: MIT
//
// Events as they come in real runs and as they should not: a profiler drops what it cannot use.
#include <cmath>
#include <cstring>
#include <limits>

#include <ciuic/testing/guarded_struct.hpp>

#include "bench.hpp"
#include "profiler_tests.hpp"

namespace ciuic::testing::profiler {
namespace {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

/// Events in between, a step's end, a flush: what would stumble over what was kept.
void go_on(Bench& bench) {
  for (uint64_t step = 1000; step < 1060; ++step) {
    bench.emit(step_events(bench, step));
  }
  bench.flush();
}

/// Memory of one emit: ends at a guard page, and is gone after the call.
class GuardedFields {
 public:
  explicit GuardedFields(const std::vector<std::pair<std::string, std::string>>& texts) {
    size_t bytes = 0;
    for (const auto& [key, value] : texts) {
      bytes += key.size() + value.size();
    }
    text_ = std::make_unique<GuardedBytes>(bytes);
    char* at = text_->data();
    const auto place = [&at](const std::string& s) {
      std::memcpy(at, s.data(), s.size());
      at += s.size();
      return ciuic_str{at - s.size(), s.size()};
    };
    std::vector<ciuic_field> fields;
    for (const auto& [key, value] : texts) {
      ciuic_field f{};
      f.key = place(key);
      f.value.s = place(value);
      f.type = CIUIC_TYPE_STRING;
      fields.push_back(f);
    }
    fields_ = std::make_unique<GuardedArray<ciuic_field>>(fields);
  }
  [[nodiscard]] ciuic_array c() const { return fields_->c(); }
  void forbid() const {
    fields_->forbid();
    text_->forbid();
  }

 private:
  std::unique_ptr<GuardedBytes> text_;
  std::unique_ptr<GuardedArray<ciuic_field>> fields_;
};

}  // namespace

void events_unmatched(const TestContext& context) {
  Bench bench(context);
  const ciuic_str name = bench.names("span");
  for (uint32_t category = 1; category <= CIUIC_CATEGORY_ERROR; ++category) {
    for (const uint64_t id : {uint64_t{0}, uint64_t{7}, uint64_t{1} << 40, kHuge - 1, kHuge}) {
      bench.emit(event(CIUIC_EVENT_END, category, name, id));               // never begun
      bench.emit(event(CIUIC_EVENT_BEGIN, category, name, id, kHuge - 5));  // unknown parent
      bench.emit(event(CIUIC_EVENT_BEGIN, category, name, id, id));         // its own parent
      ciuic_event early = event(CIUIC_EVENT_END, category, name, id);
      early.time_ns = 1;  // before it began
      bench.emit(early);
      bench.emit(event(CIUIC_EVENT_END, category, name, id));  // ended twice
      bench.emit(event(CIUIC_EVENT_INSTANT, category, name, id, kHuge - 6));
      ciuic_event late = event(CIUIC_EVENT_BEGIN, category, name, id);
      late.time_ns = kHuge;
      bench.emit(late);
      bench.emit(event(CIUIC_EVENT_END, category, name, id));
    }
    for (const double value :
         {0.0, -1e308, std::nan(""), std::numeric_limits<double>::infinity()}) {
      ciuic_event counter = event(CIUIC_EVENT_COUNTER, category, name);
      counter.value = value;
      bench.emit(counter);
    }
  }
  for (const uint64_t step : {uint64_t{5}, uint64_t{5}, uint64_t{3}, uint64_t{0}, kHuge}) {
    ciuic_event end = event(CIUIC_EVENT_STEP, CIUIC_CATEGORY_STEP, name);
    end.a = step;
    end.b = kHuge;
    bench.emit(end);
  }
  go_on(bench);
  bench.finish();
}

void events_unknown(const TestContext& context) {
  Bench bench(context);
  const ciuic_str name = bench.names("from the future");
  for (const uint32_t type : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 99U, 0xFFFFFFFFU}) {
    for (const uint32_t category : {0U, 11U, 15U, 16U, 17U, 31U, 63U, 64U, 1000U, 0xFFFFFFFFU}) {
      bench.emit(event(type, category, name, 1));
      bench.emit(event(type, category, name, 2, 1));
    }
  }
  go_on(bench);
  bench.finish();
}

void events_fields(const TestContext& context) {
  Bench bench(context);
  const std::vector<int64_t> integers = {1, -2, 3};
  const std::vector<double> numbers = {0.5, std::nan("")};
  const std::vector<ciuic_str> texts = {to_str("a"), {nullptr, 0}, to_str("b\"c")};
  std::vector<ciuic_field> fields;
  const auto add = [&](uint32_t type, const char* key) -> ciuic_value& {
    ciuic_field& f = fields.emplace_back();
    f.type = type;
    f.key = to_str(key);
    return f.value;
  };
  add(CIUIC_TYPE_BOOL, "bool").i = 1;
  add(CIUIC_TYPE_I64, "i64").i = std::numeric_limits<int64_t>::min();
  add(CIUIC_TYPE_F64, "f64").f = std::nan("");
  add(CIUIC_TYPE_STRING, "string").s = to_str("text, \"quoted\"\n");
  add(CIUIC_TYPE_ENUM, "enum").s = to_str("choice");
  add(CIUIC_TYPE_SIZE, "size").i = int64_t{1} << 40;
  add(CIUIC_TYPE_DURATION, "duration").i = -1;
  add(CIUIC_TYPE_COUNT, "count").i = 7;
  add(CIUIC_TYPE_LIST_I64, "list_i64").list = to_array(integers);
  add(CIUIC_TYPE_LIST_F64, "list_f64").list = to_array(numbers);
  add(CIUIC_TYPE_LIST_STRING, "list_string").list = to_array(texts);
  add(CIUIC_TYPE_LIST_I64, "empty_list").list = {nullptr, 0, 0};
  add(CIUIC_TYPE_STRING, "empty").s = {nullptr, 0};
  add(99, "unknown type").i = 5;
  add(CIUIC_TYPE_I64, "").i = 5;
  for (const uint32_t type : {1U, 2U, 3U, 4U, 5U}) {
    for (uint32_t category = 1; category <= CIUIC_CATEGORY_ERROR; ++category) {
      ciuic_event e = event(type, category, bench.names("with fields"), 3);
      e.fields = to_array(fields);
      bench.emit(e);
      e.fields = {nullptr, 0, 0};
      bench.emit(e);
    }
  }
  bench.emit(std::vector<ciuic_event>());
  go_on(bench);
  bench.finish();
}

void events_names(const TestContext& context) {
  Bench bench(context);
  for (const std::string& name :
       {std::string(), std::string(1'000'000, 'n'), std::string("\xff\xfe\x80"),
        std::string("a\0b", 3), std::string("%s%n%d"), std::string("a,b;\"c\"\n\td\\")}) {
    for (const uint32_t type : {1U, 2U, 3U, 4U, 5U}) {
      for (uint32_t category = 1; category <= CIUIC_CATEGORY_ERROR; ++category) {
        ciuic_str interned = bench.names(name);
        interned.data = name.empty() ? nullptr : interned.data;
        bench.emit(event(type, category, interned, 5));
      }
    }
  }
  go_on(bench);
  bench.finish();
}

void events_not_kept(const TestContext& context) {
  Bench bench(context);
  const ciuic_str name = bench.names("kept by the host until destroy");
  std::vector<std::unique_ptr<GuardedArray<ciuic_event>>> given;
  for (const uint32_t type : {1U, 3U, 4U, 2U, 5U}) {
    for (uint32_t category = 1; category <= CIUIC_CATEGORY_ERROR; ++category) {
      const GuardedFields fields({{"key", "value"}, {"reason", "a longer text than most have"}});
      ciuic_event e = event(type, category, name, category);
      e.fields = fields.c();
      given.push_back(std::make_unique<GuardedArray<ciuic_event>>(std::vector<ciuic_event>{e, e}));
      const ciuic_array events = given.back()->c();
      bench.instance().table<ciuic_profiler_vt>().emit(bench.instance().self(), events);
      given.back()->forbid();
      fields.forbid();
    }
  }
  go_on(bench);
  bench.finish();
}

void events_longer(const TestContext& context) {
  Bench bench(context);
  for (uint64_t step = 1; step <= 3; ++step) {
    std::vector<ciuic_event> events = step_events(bench, step);
    for (ciuic_event& e : events) {
      e.struct_size = sizeof(ciuic_event) + 40;
    }
    const GuardedArray<ciuic_event> longer(events, 40);
    bench.instance().table<ciuic_profiler_vt>().emit(bench.instance().self(), longer.c());
  }
  go_on(bench);
  bench.finish();
}

void events_unchanged(const TestContext& context) {
  Bench bench(context);
  std::vector<ciuic_field> fields(1);
  fields[0].key = to_str("key");
  fields[0].type = CIUIC_TYPE_I64;
  std::vector<ciuic_event> events = step_events(bench, 1);
  for (ciuic_event& e : events) {
    e.fields = to_array(fields);
  }
  const std::vector<ciuic_event> before = events;
  const std::vector<ciuic_field> fields_before = fields;
  bench.emit(events);
  bench.flush();
  require(std::memcmp(events.data(), before.data(), events.size() * sizeof(ciuic_event)) == 0 &&
              std::memcmp(fields.data(), fields_before.data(), sizeof(ciuic_field)) == 0,
          "emit wrote into the events that it was shown");
}

}  // namespace ciuic::testing::profiler
