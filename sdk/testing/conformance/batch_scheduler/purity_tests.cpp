// SPDX-License-Identifier: MIT
//
// A plan is a function of request, options, data and reports: not of the clock, the time zone, the
// thread, the order of calls, or how often it was asked.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <random>
#include <thread>

#include "scheduler_tests.hpp"
#include "shifted_clock.hpp"

namespace ciuic::testing {
namespace {

constexpr int kSteps = 16;
constexpr uint64_t kRows = 101;

/// Plans of the first steps, each asked once and in order.
struct Reference {
  std::vector<Cursor> cursors;
  std::vector<Plan> plans;
};
Reference reference(const SchedulerBench& bench) {
  Reference out;
  Cursor cursor;
  for (int i = 0; i < kSteps; ++i) {
    out.cursors.push_back(cursor);
    out.plans.push_back(bench.plan(cursor));
    cursor = after(cursor, out.plans.back());
  }
  return out;
}

void expect_same(const SchedulerBench& bench, const Reference& reference, size_t i,
                 const std::string& when) {
  const std::string what = difference(bench.plan(reference.cursors[i]), reference.plans[i]);
  require(what.empty(),
          to_text(bench.request(reference.cursors[i])) + " differs when " + when + ": " + what);
}

/// Runs `check(bench, data, seat)` over the data sets at the largest world.
template <typename Check>
void for_benches(const TestContext& context, Check&& check) {
  const Seat seat{0, largest_world(context), {CIUIC_DEVICE_CPU, 0}};
  for (const std::vector<uint64_t>& lengths : data_sets(context, kRows)) {
    ReferenceData data(lengths, context.seed);
    const SchedulerBench bench(context, data, seat);
    check(bench, data, seat);
  }
}

}  // namespace

void plan_repeats(const TestContext& context) {
  for_benches(context, [](const SchedulerBench& bench, ReferenceData&, Seat) {
    const Reference all = reference(bench);
    for (size_t i = 0; i < all.plans.size(); ++i) {
      expect_same(bench, all, i, "asked again, after the plans of other steps");
      expect_same(bench, all, i, "asked twice in a row");
    }
  });
}

void plan_does_not_know_call_order(const TestContext& context) {
  for_benches(context, [&](const SchedulerBench& bench, ReferenceData& data, Seat seat) {
    const Reference all = reference(bench);
    std::mt19937_64 random(context.seed);
    for (int round = 0; round < 3; ++round) {
      std::vector<size_t> order(all.plans.size());
      for (size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
      }
      std::shuffle(order.begin(), order.end(), random);
      const SchedulerBench fresh(context, data, seat);
      for (const size_t i : order) {
        expect_same(fresh, all, i, "steps are asked in another order");
      }
    }
  });
}

void plan_is_the_same_in_a_fresh_instance(const TestContext& context) {
  for_benches(context, [&](const SchedulerBench& bench, ReferenceData& data, Seat seat) {
    const Reference all = reference(bench);
    for (size_t i = 0; i < all.plans.size(); i += 5) {
      const SchedulerBench fresh(context, data, seat);
      expect_same(fresh, all, i, "a fresh instance is asked for that step first");
    }
  });
}

void plan_does_not_know_the_clock(const TestContext& context) {
  for_benches(context, [](const SchedulerBench& bench, ReferenceData&, Seat) {
    const Reference all = reference(bench);
    for (const int64_t seconds : {int64_t{1}, int64_t{3600}, int64_t{40} * 365 * 86400}) {
      for (size_t i = 0; i < all.plans.size(); ++i) {
        const ShiftedClock later(seconds);
        expect_same(bench, all, i, "the clock is " + std::to_string(seconds) + " s later");
      }
    }
    for (const char* zone : {"Pacific/Kiritimati", "XXX-14", "YYY+12"}) {
      const TimeZone there(zone);
      for (size_t i = 0; i < all.plans.size(); ++i) {
        expect_same(bench, all, i, std::string("TZ is ") + zone);
      }
    }
  });
}

void plan_does_not_know_the_thread(const TestContext& context) {
  for_benches(context, [](const SchedulerBench& bench, ReferenceData&, Seat) {
    const Reference all = reference(bench);
    for (size_t i = 0; i < all.plans.size(); ++i) {
      std::exception_ptr failure;
      std::thread([&] {
        try {
          expect_same(bench, all, i, "another thread asks");
        } catch (const std::exception&) {
          failure = std::current_exception();
        }
      }).join();
      if (failure) {
        std::rethrow_exception(failure);
      }
    }
  });
}

void plan_takes_huge_steps(const TestContext& context) {
  for_benches(context, [](const SchedulerBench& bench, ReferenceData& data, Seat) {
    const Plan first = bench.plan(Cursor{});
    const uint64_t before = (uint64_t{1} << 40) - 1;  // steps done
    Cursor cursor{before + 1, before * first.samples, before * first.tokens};
    std::set<uint64_t> seen;
    for (int i = 0; i < 3; ++i) {
      const Plan plan = bench.plan(cursor);
      for (const ciuic_batch_item& item : plan.items) {
        // Each step has a sample at least; a scheduler may look ahead or hold back by an epoch or
        // two.
        require(item.sample + 2 * data.rows() >= cursor.step - 1,
                to_text(bench.request(cursor)) + ": " + to_text(item) +
                    "; by then every sample up to that number was served: a number has overflown");
      }
      std::set<uint64_t> samples;
      for (const ciuic_batch_item& item : plan.items) {
        samples.insert(item.sample);
      }
      for (const uint64_t sample : samples) {
        require(seen.insert(sample).second, to_text(bench.request(cursor)) + " serves sample " +
                                                std::to_string(sample) +
                                                " again, of one of the two steps before");
      }
      cursor = after(cursor, plan);
    }
  });
}

}  // namespace ciuic::testing
