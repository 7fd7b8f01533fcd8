// SPDX-License-Identifier: MIT
//
// Rounding by the seed: only where a plugin says so, the same for the same seed, and never further
// than to a neighbour.
#include <cstring>
#include <map>
#include <set>
#include <string>

#include <ciuic/testing/features.hpp>

#include "operand.h"
#include "optimizer_host.h"
#include "optimizer_tables.h"
#include "rounds_by_seed.h"

namespace ciuic::testing {
namespace {

bool says_so(const TestContext& context) {
  return has_feature(context.plugin.descriptor(), "rounding:stochastic");
}

void seed_is_announced(const TestContext& context) {
  if (says_so(context)) {
    throw NotOffered("the plugin says that it rounds by the seed (rounding:stochastic)");
  }
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  for_each_layout([&](const Layout& layout) {
    require(!rounds_by_seed(optimizer, layout, context.seed),
            "another seed gives other bits (" + text_of(layout) +
                "); a rule that rounds by the seed has the feature rounding:stochastic");
  });
}

RuleStep step_with(uint64_t seed) {
  RuleStep step{1, 1e-2, 1, 0.5};
  step.seed = seed;
  return step;
}

void same_seed_repeats(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  for_each_layout([&](const Layout& layout) {
    Operand one(optimizer, 1003, layout, context.seed);
    Operand two(optimizer, 1003, layout, context.seed, 3);
    one.update(optimizer, step_with(5));
    two.update(optimizer, step_with(5));
    two.require_same(one, "the same update with the same seed (" + text_of(layout) + ")");
  });
}

/// Whatever the seed, an element has one of two values that no code lies between.
void stays_with_neighbours(const TestContext& context) {
  constexpr uint64_t kSeeds = 64;
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  if (!rounds_by_seed(optimizer, kNarrowLayout, context.seed)) {
    throw NotOffered("the seed changes nothing as the plugin is set up");
  }
  std::map<std::pair<size_t, int64_t>, std::set<int32_t>> codes;  // by tensor and element
  const auto note = [&](size_t tensor, const Column& column) {
    if (!same(column.dtype(), kBF16)) {
      return;
    }
    for (int64_t i = 0; i < column.count(); ++i) {
      uint16_t code = 0;
      std::memcpy(&code, column.place(i), sizeof(code));
      const int32_t magnitude = code & 0x7FFF;
      codes[{tensor, i}].insert((code & 0x8000) != 0 ? -magnitude : magnitude);
    }
  };
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Operand o(optimizer, 256, kNarrowLayout, context.seed);
    o.update(optimizer, step_with(seed));
    note(0, o.value);
    for (size_t s = 0; s < o.state.size(); ++s) {
      note(s + 1, *o.state[s]);
    }
  }
  for (const auto& [where, seen] : codes) {
    require(*seen.rbegin() - *seen.begin() <= 1,
            "element " + std::to_string(where.second) + " of " +
                (where.first == 0 ? std::string("the value")
                                  : "state tensor " + std::to_string(where.first - 1)) +
                " came out " + std::to_string(*seen.rbegin() - *seen.begin()) +
                " bf16 codes apart by the seed alone; rounding goes to one of two neighbours");
  }
}

}  // namespace

TestTable optimizer_seed_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_OPTIMIZER;
  return {
      {"optimizer.seed.announced", 3, kKind, 20,
       "without rounding:stochastic the seed changes nothing", seed_is_announced},
      {"optimizer.seed.repeats", 3, kKind, 20, "the same seed gives the same bits",
       same_seed_repeats},
      {"optimizer.seed.neighbours", 3, kKind, 20,
       "rounding by the seed goes to one of two neighbouring codes", stays_with_neighbours},
  };
}

}  // namespace ciuic::testing
