// SPDX-License-Identifier: MIT
//
// Ranges of a parameter: any split at granules gives the same bits, from any threads, and nothing
// outside the range is touched.
#include <limits>
#include <string>
#include <sys/resource.h>
#include <thread>

#include <ciuic/testing/reference_threads.hpp>

#include "operand.h"
#include "optimizer_host.h"
#include "optimizer_tables.h"
#include "rounds_by_seed.h"

namespace ciuic::testing {
namespace {

RuleStep step_of(uint64_t update) { return {update, 1e-2, 1, 0.5}; }

void any_split(const TestContext& context) {
  for_each_layout([&](const Layout& layout) {
    const OptimizerHost host;
    const PluginInstance optimizer = context.create(host);
    const int64_t count = 5003;
    Operand whole(optimizer, count, layout, context.seed);
    Operand calls(optimizer, count, layout, context.seed, 2);
    Operand arrays(optimizer, count, layout, context.seed, 5);
    const std::vector<Range> ranges = cut(count, whole.granule, 23);
    for (uint64_t update = 1; update <= 3; ++update) {
      for (Operand* o : {&whole, &calls, &arrays}) {
        o->set_gradients(context.seed + update);
      }
      whole.update(optimizer, step_of(update));
      for (const Range& range : ranges) {
        calls.update(optimizer, step_of(update), {range});
      }
      arrays.update(optimizer, step_of(update), ranges);
    }
    calls.require_same(
        whole, "updated in " + std::to_string(ranges.size()) + " calls (" + text_of(layout) + ")");
    arrays.require_same(whole, "updated in one call with " + std::to_string(ranges.size()) +
                                   " ranges (" + text_of(layout) + ")");
  });
}

/// The same elements at another place of the parameter.
void any_place(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  if (rounds_by_seed(optimizer, kPlainLayout, context.seed)) {
    throw NotOffered("it rounds by the seed and the element's index");
  }
  Operand here(optimizer, 640, kPlainLayout, context.seed);
  Operand there(optimizer, 640, kPlainLayout, context.seed);
  there.param.num_elements = 640 + 4 * here.granule * 64;
  here.update(optimizer, step_of(1));
  there.update(optimizer, step_of(1), {{0, 640}}, here.granule * 64);
  there.require_same(here, "the same elements at begin " + std::to_string(here.granule * 64));
}

void concurrent(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  const int64_t count = 40'003;
  Operand serial(optimizer, count, kNarrowLayout, context.seed);
  Operand parallel(optimizer, count, kNarrowLayout, context.seed);
  const std::vector<Range> ranges = cut(count, serial.granule, 32);
  for (uint64_t update = 1; update <= 8; ++update) {
    serial.update(optimizer, step_of(update));
    std::vector<std::thread> callers;
    std::exception_ptr error;
    for (size_t t = 0; t < 4; ++t) {
      callers.emplace_back([&, t] {
        try {
          for (size_t i = t; i < ranges.size(); i += 4) {
            parallel.update(optimizer, step_of(update), {ranges[i]});
          }
        } catch (...) {
          error = std::current_exception();
        }
      });
    }
    for (std::thread& caller : callers) {
      caller.join();
    }
    if (error) {
      std::rethrow_exception(error);
    }
  }
  parallel.require_same(serial, "disjoint ranges from 4 threads at once");
}

void stays_inside(const TestContext& context) {
  for_each_layout([&](const Layout& layout) {
    const OptimizerHost host;
    const PluginInstance optimizer = context.create(host);
    for (const int64_t count :
         {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1023, 1025}) {
      for (const int64_t lead : {0, 1, 3}) {
        Operand o(optimizer, count, layout, context.seed, lead);
        o.update(optimizer, step_of(1));
        o.require_margins(std::to_string(count) + " elements, " + text_of(layout));
      }
    }
    // A range in the middle leaves both sides alone.
    Operand o(optimizer, 3 * 64 * 8, layout, context.seed);
    Operand before(optimizer, o.count(), layout, context.seed);
    const int64_t third = o.count() / 3 / o.granule * o.granule;
    if (third > 0) {
      o.update(optimizer, step_of(1), {{third, 2 * third}});
      for (int64_t i = 0; i < o.count(); ++i) {
        const bool is_outside = i < third || i >= 2 * third;
        require(!is_outside || o.master_column().at(i) == before.master_column().at(i),
                "an update of [" + std::to_string(third) + ", " + std::to_string(2 * third) +
                    ") changed element " + std::to_string(i));
      }
    }
  });
}

void gradient_is_read_only(const TestContext& context) {
  for_each_layout([&](const Layout& layout) {
    const OptimizerHost host;
    const PluginInstance optimizer = context.create(host);
    Operand o(optimizer, 1003, layout, context.seed);
    const std::string before = o.grad.bits();
    o.update(optimizer, step_of(1));
    require(o.grad.bits() == before,
            "update changed a gradient that is READ_ONLY (" + text_of(layout) + ")");
  });
}

void empty_updates(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  const auto& vt = optimizer.table<ciuic_optimizer_vt>();
  optimizer.check(vt.update(optimizer.self(), {nullptr, 0, sizeof(ciuic_update)}, nullptr));
  Operand o(optimizer, 64 * 4, kPlainLayout, context.seed);
  Operand before(optimizer, 64 * 4, kPlainLayout, context.seed);
  o.update(optimizer, step_of(1), {{0, 0}, {o.count(), o.count()}});
  o.require_same(before, "updates of no elements");
}

void nan_stays_in_its_granule(const TestContext& context) {
  for_each_layout([&](const Layout& layout) {
    const OptimizerHost host;
    const PluginInstance optimizer = context.create(host);
    Operand good(optimizer, 1003, layout, context.seed);
    Operand bad(optimizer, 1003, layout, context.seed);
    const int64_t where = 517;
    bad.grad.set(where, std::numeric_limits<double>::quiet_NaN());
    good.update(optimizer, step_of(1));
    bad.update(optimizer, step_of(1));
    for (int64_t i = 0; i < good.count(); ++i) {
      const bool is_other = i / good.granule != where / good.granule;
      require(!is_other || bad.master_column().at(i) == good.master_column().at(i),
              "a NaN gradient at element 517 changed element " + std::to_string(i) + " (" +
                  text_of(layout) + ", granule " + std::to_string(good.granule) + ")");
    }
  });
}

/// Buffers of blocks are fine; a copy of a whole tensor is not.
void no_copies(const TestContext& context) {
  constexpr int64_t kElements = int64_t{3} << 20;
  constexpr int64_t kAllowedBytes = kElements;  // a quarter of one fp32 tensor
  OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  Operand small(optimizer, 4096, kPlainLayout, context.seed);
  small.update(optimizer, step_of(1));  // code and thread stacks are in memory now
  Operand o(optimizer, kElements, kPlainLayout, context.seed);
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return int64_t{usage.ru_maxrss} * 1024;
  };
  const int64_t before = peak();
  const int64_t taken = host.peak_bytes();
  o.update(optimizer, step_of(1));
  const int64_t grown = std::max(peak() - before, host.peak_bytes() - taken);
  require(grown <= kAllowedBytes, "an update of " + std::to_string(kElements) + " elements took " +
                                      std::to_string(grown) +
                                      " bytes; at most a quarter of one fp32 tensor, " +
                                      std::to_string(kAllowedBytes) + ", may be used");
}

}  // namespace

TestTable optimizer_range_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_OPTIMIZER;
  return {
      {"optimizer.range.split", 3, kKind, 30,
       "any split at granules, in calls or in one array, gives the same bits", any_split},
      {"optimizer.range.place", 3, kKind, 20, "where in the parameter elements lie does not matter",
       any_place},
      {"optimizer.range.concurrent", 3, kKind, 60,
       "disjoint ranges from several threads at once give the same bits", concurrent},
      {"optimizer.range.inside", 3, kKind, 30, "nothing before, past or beside a range is written",
       stays_inside},
      {"optimizer.range.gradient", 3, kKind, 20, "a read-only gradient is not written",
       gradient_is_read_only},
      {"optimizer.range.empty", 3, kKind, 20, "no updates, and updates of no elements, do nothing",
       empty_updates},
      {"optimizer.range.nan", 3, kKind, 20, "a NaN gradient reaches no other granule",
       nan_stays_in_its_granule},
      {"optimizer.range.no_copies", 3, kKind, 60, "an update takes no memory the size of a tensor",
       no_copies},
  };
}

}  // namespace ciuic::testing
