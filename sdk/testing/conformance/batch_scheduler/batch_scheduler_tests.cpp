// SPDX-License-Identifier: MIT
//
// Batch schedulers: each sample once, the same plan everywhere, from any step. Features that a
// scheduler may declare: "lengths" (it packs samples of any length), "drops:epoch" (it leaves out
// samples at an epoch's end), "drops:long" (it leaves out tokens past row_tokens), "adaptive"
// (reports change later plans), "grows" (totals never shrink).
#include "../suites.h"
#include "scheduler_tests.hpp"

namespace ciuic::testing {

TestTable batch_scheduler_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_BATCH_SCHEDULER;
  return {
      {"batch_scheduler.plan.sorted", 3, kKind, 30,
       "items come by rank, micro-batch, row, position, inside the world and the micro-batches",
       plan_is_sorted},
      {"batch_scheduler.plan.token_budget", 3, kKind, 30,
       "no row is longer than row_tokens, no item empty", plan_keeps_the_token_budget},
      {"batch_scheduler.plan.inside_sample", 3, kKind, 30,
       "offset + length stays inside the sample's length", plan_stays_inside_its_samples},
      {"batch_scheduler.plan.no_overlap", 3, kKind, 30,
       "items of one row do not lie over each other", plan_has_no_overlap},
      {"batch_scheduler.plan.totals", 3, kKind, 30,
       "samples and tokens are those of the items, over all ranks", plan_totals_are_true},
      {"batch_scheduler.plan.epoch_end", 3, kKind, 30,
       "the last sample of each epoch, and no other, is marked", plan_marks_the_epoch_end},
      {"batch_scheduler.plan.only_rank", 3, kKind, 30,
       "a plan for one rank has that rank's items of the full plan and the world's totals",
       plan_of_one_rank_agrees},
      {"batch_scheduler.plan.grows", 3, kKind, 30,
       "with the feature \"grows\" totals never shrink, also when a host looks far ahead",
       plan_totals_grow},
      {"batch_scheduler.plan.equal_on_all_ranks", 3, kKind, 30,
       "instances of all ranks make the same plan", plan_is_equal_on_all_ranks},
      {"batch_scheduler.plan.repeats", 3, kKind, 30, "a plan asked again is the same",
       plan_repeats},
      {"batch_scheduler.plan.call_order", 3, kKind, 30, "plans asked in another order are the same",
       plan_does_not_know_call_order},
      {"batch_scheduler.plan.fresh_instance", 3, kKind, 30,
       "an instance that saw no earlier step makes the same plan",
       plan_is_the_same_in_a_fresh_instance},
      {"batch_scheduler.plan.clock", 3, kKind, 30,
       "another time of day and another TZ change nothing", plan_does_not_know_the_clock},
      {"batch_scheduler.plan.threads", 3, kKind, 30, "another calling thread changes nothing",
       plan_does_not_know_the_thread},
      {"batch_scheduler.plan.huge_step", 3, kKind, 30, "step 2^40 does not overflow",
       plan_takes_huge_steps},
      {"batch_scheduler.epoch.exactly_once", 3, kKind, 60,
       "over epochs every sample is served once, also where epochs meet; worlds 1 to 8",
       each_sample_once_an_epoch},
      {"batch_scheduler.epoch.small_data", 3, kKind, 60,
       "the same with fewer samples than ranks, one sample, world +- 1", small_data_is_served},
      {"batch_scheduler.epoch.lengths", 3, kKind, 60,
       "samples of any length are served whole, once", lengths_are_served_whole},
      {"batch_scheduler.epoch.ranks_disjoint", 3, kKind, 30,
       "no two ranks or micro-batches of a step share a token", ranks_are_disjoint},
      {"batch_scheduler.epoch.no_data", 3, kKind, 20,
       "no samples: an error or an empty plan, not a made-up one", no_data_is_a_clean_end},
      {"batch_scheduler.resume.same_tail", 3, kKind, 30,
       "after a save and a load at any step the rest is the same", resume_gives_the_same_tail},
      {"batch_scheduler.resume.world_change", 3, kKind, 60,
       "other world sizes from some step on keep every sample served once",
       each_sample_once_over_worlds},
      {"batch_scheduler.attempt.same_samples", 3, kKind, 30,
       "a step tried again after an out-of-memory report trains the same samples",
       another_attempt_has_the_same_samples},
      {"batch_scheduler.observe.equal_plans", 3, kKind, 30,
       "ranks with the same reports keep equal plans, samples served once",
       equal_reports_keep_plans_equal},
      {"batch_scheduler.observe.only_adaptive", 3, kKind, 30,
       "reports change nothing unless the plugin declares \"adaptive\"",
       reports_move_adaptive_schedulers_only},
      {"batch_scheduler.observe.saved", 3, kKind, 30,
       "what an adaptive scheduler learnt is in its state", reports_survive_save_and_load},
  };
}

}  // namespace ciuic::testing
