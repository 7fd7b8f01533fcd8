// SPDX-License-Identifier: MIT
//
// A hot swap as the host does it: quiesce, state_save, destroy; then the new library's create and
// state_load, and work goes on.
#include "../contract/exercise.hpp"
#include "../load/library_copy.hpp"
#include "soak_tests.hpp"

namespace ciuic::testing {
namespace {

using namespace contract;

constexpr uint64_t kRounds = 6;
constexpr uint64_t kSwapEvery = 2;

/// Rounds [first, end) of a run by an instance of its own, from `state`, which it replaces by its
/// own in the end. The first instance begins with first values.
std::string run_part(const TestContext& t, Bench& bench, Exercise& exercise, uint64_t first,
                     uint64_t end, MemoryState& state) {
  const Calls calls(bench.host());
  Instance instance(t, bench.host(), calls, {}, bench.seat());
  exercise.start(instance);
  if (first == 0) {
    exercise.first_values(instance);
  } else {
    instance.load(state);
  }
  std::string results;
  for (uint64_t i = first; i < end; ++i) {
    results += exercise.round(instance, i);
  }
  instance.quiesce();
  MemoryState saved;
  instance.save(saved);
  state.copy_from(saved);
  instance.destroy();
  return results;
}

/// By turns the library itself and its copies.
std::string swapped_run(const TestContext& t, const std::vector<const LoadedPlugin*>& generations,
                        uint64_t rounds_each) {
  Bench bench;
  const auto exercise = make_exercise(t, bench);
  MemoryState state;
  std::string results;
  for (uint64_t first = 0; first < kRounds; first += rounds_each) {
    const LoadedPlugin& plugin = *generations[first / rounds_each % generations.size()];
    const TestContext generation{t.path,    plugin,     t.options,     t.seed,
                                 t.scratch, t.patience, t.soak_seconds};
    results += run_part(generation, bench, *exercise, first, std::min(first + rounds_each, kRounds),
                        state);
  }
  require(bench.host().balanced(), "after a swapped run: " + bench.host().imbalance());
  return results;
}

uint32_t index_of(const TestContext& t) {
  uint32_t index = 0;
  while (t.plugin.query(CIUIC_ABI_MAJOR, index) != &t.plugin.descriptor()) {
    require(++index < CIUIC_NOTE_MAX_PLUGINS, "query does not show the plugin any more");
  }
  return index;
}

}  // namespace

void swaps_with_itself(const TestContext& t) {
  const LoadedPlugin copy(copy_library(t.path, t.scratch + "/copy"), index_of(t));
  const std::string straight = swapped_run(t, {&t.plugin}, kRounds);
  const std::string swapped = swapped_run(t, {&t.plugin, &copy}, kSwapEvery);
  if ((t.plugin.descriptor().flags & CIUIC_FLAG_DETERMINISTIC) != 0) {
    require(
        straight == swapped,
        "a run that was swapped twice, with state_save and state_load, gives other results than "
        "one that was not; it claims DETERMINISTIC, so something that matters is not in its "
        "state");
  }
}

}  // namespace ciuic::testing
