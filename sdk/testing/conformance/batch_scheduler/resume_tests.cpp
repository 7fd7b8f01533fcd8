// SPDX-License-Identifier: MIT
//
// A run that stops and goes on: the same tail from any step, and each sample once even when the
// world is another one afterwards.
#include <algorithm>
#include <memory>

#include "epoch_ledger.hpp"
#include "scheduler_tests.hpp"

namespace ciuic::testing {
namespace {

constexpr int kSteps = 18;

}  // namespace

void resume_gives_the_same_tail(const TestContext& context) {
  const Seat seat{0, largest_world(context), {CIUIC_DEVICE_CPU, 0}};
  for (const std::vector<uint64_t>& lengths : data_sets(context, 101)) {
    ReferenceData data(lengths, context.seed);
    const SchedulerBench whole(context, data, seat);
    const std::vector<Cursor> cursors = first_steps(whole, kSteps);
    for (const size_t stop : {1, 4, 11}) {
      const SchedulerBench before(context, data, seat);
      for (size_t i = 0; i < stop; ++i) {
        (void)before.plan(cursors[i]);
      }
      MemoryState state;
      before.save(state);
      const SchedulerBench resumed(context, data, seat);
      resumed.load(state);
      for (size_t i = stop; i < cursors.size(); ++i) {
        const std::string what = difference(resumed.plan(cursors[i]), whole.plan(cursors[i]));
        require(what.empty(), to_text(resumed.request(cursors[i])) +
                                  " differs from an uninterrupted run's after a save and a load at "
                                  "step " +
                                  std::to_string(stop + 1) + ": " + what);
      }
    }
  }
}

/// World sizes follow one another, a new instance each; consumed_samples alone says where the run
/// is.
void each_sample_once_over_worlds(const TestContext& context) {
  const std::vector<int32_t> worlds = accepted_worlds(context);
  if (worlds.size() < 2) {
    throw NotOffered("with these options the plugin takes one world size only");
  }
  for (const std::vector<uint64_t>& lengths : data_sets(context, 101)) {
    ReferenceData data(lengths, context.seed);
    EpochLedger ledger(data);
    auto state = std::make_unique<MemoryState>();
    Cursor cursor;
    for (size_t leg = 0; cursor.samples < 5 * data.rows() || leg < 2 * worlds.size(); ++leg) {
      // Up and down: 8, 1, 7, 2, ...
      const size_t i = leg % worlds.size();
      const int32_t world = i % 2 == 0 ? worlds[worlds.size() - 1 - i / 2] : worlds[i / 2];
      const SchedulerBench bench(context, data, {0, world, {CIUIC_DEVICE_CPU, 0}});
      if (leg > 0) {
        bench.load(*state);
      }
      for (int n = 0; n < 3; ++n) {
        const ciuic_batch_request request = bench.request(cursor);
        const Plan plan = bench.plan(request);
        ledger.add(plan, to_text(request));
        cursor = after(cursor, plan);
      }
      state = std::make_unique<MemoryState>();
      bench.save(*state);
    }
    const uint64_t epochs = cursor.samples / data.rows();
    ledger.expect_complete((epochs - 2) * data.rows(),
                           has_feature(context.plugin.descriptor(), kDropsTail),
                           has_feature(context.plugin.descriptor(), kTruncates));
  }
}

}  // namespace ciuic::testing
