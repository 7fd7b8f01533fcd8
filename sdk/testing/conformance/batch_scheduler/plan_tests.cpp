// SPDX-License-Identifier: MIT
//
// What every single plan must be: sorted, inside its samples and rows, with true totals, and the
// same seen by one rank as by all.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "scheduler_tests.hpp"

namespace ciuic::testing {
namespace {

constexpr int kSteps = 12;
constexpr uint64_t kRows = 101;

/// Runs `check(request, plan, data)` over worlds, data and steps.
template <typename Check>
void for_plans(const TestContext& context, Check&& check) {
  for (const int32_t world : accepted_worlds(context)) {
    for (const std::vector<uint64_t>& lengths : data_sets(context, kRows)) {
      ReferenceData data(lengths, context.seed);
      const SchedulerBench bench(context, data, {0, world, {CIUIC_DEVICE_CPU, 0}});
      Cursor cursor;
      for (int i = 0; i < kSteps; ++i) {
        const ciuic_batch_request request = bench.request(cursor);
        const Plan plan = bench.plan(request);
        check(request, plan, data);
        cursor = after(cursor, plan);
      }
    }
  }
}

auto place(const ciuic_batch_item& i) {
  return std::make_tuple(i.rank, i.micro_batch, i.row, i.position);
}

}  // namespace

void plan_is_sorted(const TestContext& context) {
  for_plans(context, [](const ciuic_batch_request& request, const Plan& plan, ReferenceData&) {
    for (size_t i = 0; i < plan.items.size(); ++i) {
      const ciuic_batch_item& item = plan.items[i];
      const std::string where = to_text(request) + ": item " + std::to_string(i) + " ";
      require(item.rank < request.world && item.micro_batch < plan.micro_batches,
              where + to_text(item) + "; expected rank < " + std::to_string(request.world) +
                  " and micro_batch < " + std::to_string(plan.micro_batches));
      require(i == 0 || place(plan.items[i - 1]) < place(item),
              where + to_text(item) + " follows " + to_text(plan.items[i == 0 ? 0 : i - 1]) +
                  "; expected order: rank, micro_batch, row, position");
    }
  });
}

void plan_keeps_the_token_budget(const TestContext& context) {
  for_plans(context, [](const ciuic_batch_request& request, const Plan& plan, ReferenceData&) {
    require(plan.row_tokens > 0 && plan.row_tokens <= request.row_tokens,
            to_text(request) + ": row_tokens of the plan is " + std::to_string(plan.row_tokens) +
                "; expected 1 to the request's " + std::to_string(request.row_tokens));
    for (const ciuic_batch_item& item : plan.items) {
      require(item.length > 0 && uint64_t{item.position} + item.length <= plan.row_tokens,
              to_text(request) + ": " + to_text(item) +
                  "; expected length > 0 and position + length <= row_tokens " +
                  std::to_string(plan.row_tokens));
    }
  });
}

void plan_stays_inside_its_samples(const TestContext& context) {
  for_plans(context, [](const ciuic_batch_request& request, const Plan& plan, ReferenceData& data) {
    for (const ciuic_batch_item& item : plan.items) {
      const uint64_t length = data.length(item.sample);
      require(item.offset <= length && item.length <= length - item.offset,
              to_text(request) + ": " + to_text(item) + "; sample " + std::to_string(item.sample) +
                  " has " + std::to_string(length) +
                  " tokens (\"ciuic.data\" lengths): expected offset + length up to that");
    }
  });
}

void plan_has_no_overlap(const TestContext& context) {
  for_plans(context, [](const ciuic_batch_request& request, const Plan& plan, ReferenceData&) {
    std::vector<ciuic_batch_item> items = plan.items;
    std::sort(items.begin(), items.end(),
              [](const auto& a, const auto& b) { return place(a) < place(b); });
    for (size_t i = 1; i < items.size(); ++i) {
      const ciuic_batch_item& a = items[i - 1];
      const ciuic_batch_item& b = items[i];
      const bool same_row = a.rank == b.rank && a.micro_batch == b.micro_batch && a.row == b.row;
      require(!same_row || uint64_t{a.position} + a.length <= b.position,
              to_text(request) + ": " + to_text(a) + " and " + to_text(b) +
                  " lie over each other in one row");
    }
  });
}

void plan_totals_are_true(const TestContext& context) {
  for_plans(context, [](const ciuic_batch_request& request, const Plan& plan, ReferenceData&) {
    std::set<uint64_t> samples;
    uint64_t tokens = 0;
    for (const ciuic_batch_item& item : plan.items) {
      samples.insert(item.sample);
      tokens += item.length;
    }
    require(plan.samples == samples.size() && plan.tokens == tokens,
            to_text(request) + ": the plan says " + std::to_string(plan.samples) + " samples, " +
                std::to_string(plan.tokens) + " tokens; its items are " +
                std::to_string(samples.size()) + " samples, " + std::to_string(tokens) + " tokens");
  });
}

void plan_marks_the_epoch_end(const TestContext& context) {
  for_plans(context, [](const ciuic_batch_request& request, const Plan& plan, ReferenceData& data) {
    std::map<uint64_t, bool> marked;
    for (const ciuic_batch_item& item : plan.items) {
      marked[item.sample] |= (item.flags & CIUIC_BATCH_EPOCH_END) != 0;
      require((item.flags & ~uint32_t{CIUIC_BATCH_EPOCH_END}) == 0,
              to_text(request) + ": " + to_text(item) + " has unknown flags");
    }
    for (const auto& [sample, is_marked] : marked) {
      const bool is_last = sample % data.rows() == data.rows() - 1;
      require(is_marked == is_last, to_text(request) + ": sample " + std::to_string(sample) +
                                        " of " + std::to_string(data.rows()) +
                                        " rows an epoch is " + (is_marked ? "" : "not ") +
                                        "marked CIUIC_BATCH_EPOCH_END");
    }
  });
}

void plan_of_one_rank_agrees(const TestContext& context) {
  for (const int32_t world : accepted_worlds(context)) {
    for (const std::vector<uint64_t>& lengths : data_sets(context, kRows)) {
      ReferenceData data(lengths, context.seed);
      const SchedulerBench bench(context, data, {0, world, {CIUIC_DEVICE_CPU, 0}});
      for (const Cursor& cursor : first_steps(bench, 4)) {
        const Plan full = bench.plan(cursor);
        for (int32_t rank = 0; rank < world; ++rank) {
          const ciuic_batch_request request = bench.request(cursor, rank);
          const auto of_rank = [rank](const Plan& plan) {
            Plan out = plan;
            out.items.clear();
            std::copy_if(plan.items.begin(), plan.items.end(), std::back_inserter(out.items),
                         [rank](const auto& i) { return i.rank == static_cast<uint32_t>(rank); });
            return out;
          };
          const std::string what = difference(of_rank(bench.plan(request)), of_rank(full));
          require(what.empty(), to_text(request) +
                                    ": this rank's items and the world's totals differ from the "
                                    "plan of all ranks (only_rank -1): " +
                                    what);
        }
      }
    }
  }
}

void plan_is_equal_on_all_ranks(const TestContext& context) {
  const int32_t world = largest_world(context);
  if (world == 1) {
    throw NotOffered("with these options the plugin takes one rank only");
  }
  for (const std::vector<uint64_t>& lengths : data_sets(context, kRows)) {
    ReferenceData data(lengths, context.seed);
    const SchedulerBench first(context, data, {0, world, {CIUIC_DEVICE_CPU, 0}});
    for (int32_t rank = 1; rank < world; ++rank) {
      const SchedulerBench other(context, data, {rank, world, {CIUIC_DEVICE_CPU, 0}});
      for (const Cursor& cursor : first_steps(first, 6)) {
        const std::string what = difference(other.plan(cursor), first.plan(cursor));
        require(what.empty(), to_text(first.request(cursor)) + " on rank " + std::to_string(rank) +
                                  " differs from rank 0's: " + what);
      }
    }
  }
}

void plan_totals_grow(const TestContext& context) {
  if (!has_feature(context.plugin.descriptor(), kGrows)) {
    throw NotOffered("no feature \"" + std::string(kGrows) + "\": its totals may shrink");
  }
  ReferenceData data(ReferenceData::uniform(kRows, kRowTokens), context.seed);
  const SchedulerBench bench(context, data, {0, largest_world(context), {CIUIC_DEVICE_CPU, 0}});
  const auto expect_no_less = [&](const Cursor& cursor, const Plan& plan, const Plan& before) {
    require(plan.samples >= before.samples && plan.tokens >= before.tokens &&
                plan.row_tokens >= before.row_tokens,
            to_text(bench.request(cursor)) + ": " + std::to_string(plan.samples) + " samples, " +
                std::to_string(plan.tokens) + " tokens, rows of " +
                std::to_string(plan.row_tokens) + "; an earlier step had " +
                std::to_string(before.samples) + ", " + std::to_string(before.tokens) + ", " +
                std::to_string(before.row_tokens) + ", and the plugin says that it grows");
  };
  Cursor cursor;
  Plan before;
  for (int i = 0; i < 4 * kSteps; ++i) {
    const Plan plan = bench.plan(cursor);
    expect_no_less(cursor, plan, before);
    for (const uint64_t steps : {uint64_t{1}, uint64_t{10}, uint64_t{1} << 20}) {
      // As if all steps between were like this one.
      const Cursor ahead{cursor.step + steps, cursor.samples + steps * plan.samples,
                         cursor.tokens + steps * plan.tokens};
      expect_no_less(ahead, bench.plan(ahead), plan);
    }
    cursor = after(cursor, plan);
    before = plan;
  }
}

}  // namespace ciuic::testing
