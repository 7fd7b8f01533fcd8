// SPDX-License-Identifier: MIT
//
// Reports of the ranks: equal reports leave plans equal everywhere, an attempt after an
// out-of-memory report trains the same samples, and only a scheduler that calls itself adaptive is
// moved by them.
#include <map>
#include <memory>
#include <random>

#include "epoch_ledger.hpp"
#include "scheduler_tests.hpp"

namespace ciuic::testing {
namespace {

constexpr int kSteps = 20;

/// What ranks of unequal speed and memory report; every third step one of them ran out.
class Reports {
 public:
  explicit Reports(uint64_t seed) : random_(seed) {}

  std::vector<ciuic_rank_report> of(const Plan& plan, uint32_t world, bool out_of_memory) {
    std::vector<ciuic_rank_report> out(world);
    for (uint32_t rank = 0; rank < world; ++rank) {
      ciuic_rank_report& r = out[rank];
      r.struct_size = sizeof(r);
      r.rank = static_cast<int32_t>(rank);
      r.micro_batches = plan.micro_batches;
      for (const ciuic_batch_item& item : plan.items) {
        r.tokens += item.rank == rank ? item.length : 0;
      }
      r.memory_total = uint64_t{1} << 34;
      r.memory_used = r.memory_total / 4 * (1 + random_() % 3);
      r.seconds = 0.1 * (1 + rank) + 0.01 * static_cast<double>(random_() % 10);
      r.flags = out_of_memory && rank == world - 1 ? CIUIC_REPORT_OOM : 0;
    }
    return out;
  }

 private:
  std::mt19937_64 random_;
};

/// Several instances, one a rank, that see the same steps and reports.
class Team {
 public:
  Team(const TestContext& context, ReferenceData& data, int32_t world)
      : reports_(context.seed), world_(static_cast<uint32_t>(world)) {
    for (int32_t rank = 0; rank < world; ++rank) {
      members_.push_back(std::make_unique<SchedulerBench>(
          context, data, Seat{rank, world, {CIUIC_DEVICE_CPU, 0}}));
    }
  }

  /// The plan that all agree on.
  Plan plan(const ciuic_batch_request& request) {
    const Plan first = members_[0]->plan(request);
    for (size_t rank = 1; rank < members_.size(); ++rank) {
      const std::string what = difference(members_[rank]->plan(request), first);
      require(what.empty(),
              to_text(request) + " on rank " + std::to_string(rank) +
                  " differs from rank 0's although both got the same reports: " + what);
    }
    return first;
  }
  void observe(const ciuic_batch_request& request, const Plan& plan, bool out_of_memory) {
    const auto reports = reports_.of(plan, world_, out_of_memory);
    for (const auto& member : members_) {
      member->observe(request.step, request.attempt, reports);
    }
  }
  const SchedulerBench& first() const { return *members_[0]; }

 private:
  Reports reports_;
  uint32_t world_;
  std::vector<std::unique_ptr<SchedulerBench>> members_;
};

std::map<uint64_t, uint64_t> tokens_by_sample(const Plan& plan) {
  std::map<uint64_t, uint64_t> out;
  for (const ciuic_batch_item& item : plan.items) {
    out[item.sample] += item.length;
  }
  return out;
}

bool out_of_memory_at(uint64_t step) { return step % 3 == 0; }

/// A step as a run does it: on an out-of-memory report it is tried once more. Returns the plan that
/// was trained.
Plan run_step(Team& team, const Cursor& cursor) {
  ciuic_batch_request request = team.first().request(cursor);
  Plan plan = team.plan(request);
  team.observe(request, plan, out_of_memory_at(cursor.step));
  if (out_of_memory_at(cursor.step)) {
    request.attempt = 1;
    plan = team.plan(request);
    team.observe(request, plan, false);
  }
  return plan;
}

}  // namespace

void another_attempt_has_the_same_samples(const TestContext& context) {
  for (const int32_t world : accepted_worlds(context)) {
    for (const std::vector<uint64_t>& lengths : data_sets(context, 101)) {
      ReferenceData data(lengths, context.seed);
      Team team(context, data, world);
      Cursor cursor;
      for (int i = 0; i < 6; ++i) {
        ciuic_batch_request request = team.first().request(cursor);
        const Plan plan = team.plan(request);
        for (uint32_t attempt = 1; attempt <= 3; ++attempt) {
          team.observe(request, plan, true);
          request.attempt = attempt;
          Plan again;
          try {
            again = team.plan(request);
          } catch (const Error& error) {
            require(error.code() == CIUIC_EXHAUSTED || error.code() == CIUIC_UNIMPLEMENTED,
                    to_text(request) + ": got " + code_name(error.code()) + " (" + error.what() +
                        "); a scheduler that cannot make it smaller says EXHAUSTED");
            break;
          }
          require(tokens_by_sample(again) == tokens_by_sample(plan),
                  to_text(request) +
                      " trains other samples, or other tokens of them, than "
                      "attempt 0 of that step");
        }
        cursor = after(cursor, plan);
      }
    }
  }
}

void equal_reports_keep_plans_equal(const TestContext& context) {
  const int32_t world = largest_world(context, 4);
  for (const std::vector<uint64_t>& lengths : data_sets(context, 101)) {
    ReferenceData data(lengths, context.seed);
    Team team(context, data, world);
    EpochLedger ledger(data);
    Cursor cursor;
    for (int i = 0; i < kSteps; ++i) {
      const Plan plan = run_step(team, cursor);
      ledger.add(plan, "step " + std::to_string(cursor.step) + ", with reports,");
      cursor = after(cursor, plan);
    }
  }
}

void reports_move_adaptive_schedulers_only(const TestContext& context) {
  if (has_feature(context.plugin.descriptor(), kAdaptive)) {
    throw NotOffered("the feature \"adaptive\" says that reports change plans");
  }
  const int32_t world = largest_world(context, 4);
  for (const std::vector<uint64_t>& lengths : data_sets(context, 101)) {
    ReferenceData data(lengths, context.seed);
    const SchedulerBench alone(context, data, {0, world, {CIUIC_DEVICE_CPU, 0}});
    Team team(context, data, world);
    Cursor cursor;
    for (int i = 0; i < kSteps; ++i) {
      const Plan plan = alone.plan(cursor);
      const std::string what = difference(team.plan(team.first().request(cursor)), plan);
      require(what.empty(), to_text(alone.request(cursor)) +
                                " differs between an instance that got reports and one that got "
                                "none, without the feature \"adaptive\": " +
                                what);
      (void)run_step(team, cursor);
      cursor = after(cursor, plan);
    }
  }
}

void reports_survive_save_and_load(const TestContext& context) {
  if (!has_feature(context.plugin.descriptor(), kAdaptive)) {
    throw NotOffered("no feature \"adaptive\": there is nothing to keep of reports");
  }
  const int32_t world = largest_world(context, 4);
  for (const std::vector<uint64_t>& lengths : data_sets(context, 101)) {
    ReferenceData data(lengths, context.seed);
    Team team(context, data, world);
    Cursor cursor;
    for (int i = 0; i < 7; ++i) {
      cursor = after(cursor, run_step(team, cursor));
    }
    MemoryState state;
    team.first().save(state);
    const SchedulerBench resumed(context, data, {0, world, {CIUIC_DEVICE_CPU, 0}});
    resumed.load(state);
    for (int i = 0; i < 5; ++i) {
      const Plan plan = team.plan(team.first().request(cursor));
      const std::string what = difference(resumed.plan(cursor), plan);
      require(what.empty(), to_text(resumed.request(cursor)) +
                                " differs after state_save and state_load from the instance that "
                                "got the reports itself: " +
                                what);
      cursor = after(cursor, plan);
    }
  }
}

}  // namespace ciuic::testing
