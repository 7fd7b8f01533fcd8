// SPDX-License-Identifier: MIT
//
// The functions of the batch scheduler's tests; batch_scheduler_tests.cpp has the table.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scheduler_bench.hpp"

namespace ciuic::testing {

// plan_tests.cpp
void plan_is_sorted(const TestContext& context);
void plan_keeps_the_token_budget(const TestContext& context);
void plan_stays_inside_its_samples(const TestContext& context);
void plan_has_no_overlap(const TestContext& context);
void plan_totals_are_true(const TestContext& context);
void plan_marks_the_epoch_end(const TestContext& context);
void plan_of_one_rank_agrees(const TestContext& context);
void plan_totals_grow(const TestContext& context);
void plan_is_equal_on_all_ranks(const TestContext& context);

// purity_tests.cpp
void plan_repeats(const TestContext& context);
void plan_does_not_know_call_order(const TestContext& context);
void plan_is_the_same_in_a_fresh_instance(const TestContext& context);
void plan_does_not_know_the_clock(const TestContext& context);
void plan_does_not_know_the_thread(const TestContext& context);
void plan_takes_huge_steps(const TestContext& context);

// epoch_tests.cpp
void each_sample_once_an_epoch(const TestContext& context);
void small_data_is_served(const TestContext& context);
void lengths_are_served_whole(const TestContext& context);
void ranks_are_disjoint(const TestContext& context);
void no_data_is_a_clean_end(const TestContext& context);

// resume_tests.cpp
void resume_gives_the_same_tail(const TestContext& context);
void each_sample_once_over_worlds(const TestContext& context);

// observe_tests.cpp
void another_attempt_has_the_same_samples(const TestContext& context);
void equal_reports_keep_plans_equal(const TestContext& context);
void reports_move_adaptive_schedulers_only(const TestContext& context);
void reports_survive_save_and_load(const TestContext& context);

}  // namespace ciuic::testing
