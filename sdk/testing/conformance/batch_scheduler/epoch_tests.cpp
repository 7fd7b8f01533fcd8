// SPDX-License-Identifier: MIT
//
// Over whole epochs: each sample once, on one rank, and nothing lost where epochs meet.
#include <map>
#include <set>

#include "epoch_ledger.hpp"
#include "scheduler_tests.hpp"

namespace ciuic::testing {
namespace {

constexpr uint64_t kEpochs = 4;
constexpr int kSmallestRun = 6;  // steps
constexpr uint64_t kStepLimit = 20'000;

/// Walks until `kEpochs` are consumed and then looks back at all but the last two.
void serve_epochs(const TestContext& context, const std::vector<uint64_t>& lengths, int32_t world) {
  ReferenceData data(lengths, context.seed);
  const SchedulerBench bench(context, data, {0, world, {CIUIC_DEVICE_CPU, 0}});
  EpochLedger ledger(data);
  Cursor cursor;
  while (cursor.samples < kEpochs * data.rows() || cursor.step <= kSmallestRun) {
    const ciuic_batch_request request = bench.request(cursor);
    const Plan plan = bench.plan(request);
    ledger.add(plan, to_text(request) + " on " + std::to_string(data.rows()) + " rows");
    cursor = after(cursor, plan);
    require(cursor.step < kStepLimit, std::to_string(kStepLimit) + " steps did not serve " +
                                          std::to_string(kEpochs * data.rows()) + " samples");
  }
  const uint64_t epochs = cursor.samples / data.rows();
  ledger.expect_complete((epochs - 2) * data.rows(),
                         has_feature(context.plugin.descriptor(), kDropsTail),
                         has_feature(context.plugin.descriptor(), kTruncates));
}

std::set<uint64_t> sizes_around(int32_t world) {
  const auto w = static_cast<uint64_t>(world);
  std::set<uint64_t> out{1, 2, 3, 7, w, w + 1};
  if (w > 1) {
    out.insert(w - 1);
  }
  return out;
}

}  // namespace

void each_sample_once_an_epoch(const TestContext& context) {
  for (const int32_t world : accepted_worlds(context)) {
    for (const uint64_t rows : {96, 101, 257}) {
      serve_epochs(context, ReferenceData::uniform(rows, kRowTokens), world);
    }
  }
}

void small_data_is_served(const TestContext& context) {
  for (const int32_t world : accepted_worlds(context)) {
    for (const uint64_t rows : sizes_around(world)) {
      serve_epochs(context, ReferenceData::uniform(rows, kRowTokens), world);
    }
  }
}

void lengths_are_served_whole(const TestContext& context) {
  if (!has_feature(context.plugin.descriptor(), kPacks)) {
    throw NotOffered("no feature \"" + std::string(kPacks) +
                     "\": this scheduler serves rows of row_tokens only");
  }
  for (const int32_t world : accepted_worlds(context)) {
    for (const uint64_t rows : {1, 5, 101}) {
      serve_epochs(context, ReferenceData::documents(rows, kRowTokens, context.seed), world);
      serve_epochs(context, ReferenceData::documents(rows, 5 * kRowTokens, context.seed), world);
    }
  }
}

void ranks_are_disjoint(const TestContext& context) {
  for (const int32_t world : accepted_worlds(context)) {
    for (const std::vector<uint64_t>& lengths : data_sets(context, 101)) {
      ReferenceData data(lengths, context.seed);
      const SchedulerBench bench(context, data, {0, world, {CIUIC_DEVICE_CPU, 0}});
      for (const Cursor& cursor : first_steps(bench, 10)) {
        EpochLedger ledger(data);  // of one step: only ranks and micro-batches can clash
        ledger.add(bench.plan(cursor), to_text(bench.request(cursor)));
      }
    }
  }
}

void no_data_is_a_clean_end(const TestContext& context) {
  ReferenceData data({}, context.seed);
  try {
    const SchedulerBench bench(context, data, {0, 1, {CIUIC_DEVICE_CPU, 0}});
    const Plan plan = bench.plan(Cursor{});
    require(plan.items.empty(), "\"ciuic.data\" has 0 samples; the plan serves " +
                                    std::to_string(plan.items.size()) + " items, the first " +
                                    to_text(plan.items.front()) +
                                    ". Expected: an error, or a plan without items");
  } catch (const Error& error) {
    require(error.code() != CIUIC_INTERNAL,
            std::string("with 0 samples: an internal error: ") + error.what() +
                "; expected INVALID, PRECONDITION or a plan without items");
  }
}

}  // namespace ciuic::testing
