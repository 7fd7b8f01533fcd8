// SPDX-License-Identifier: MIT
//
// The functions of the precision tests; precision_tests.cpp has the table.
#pragma once

#include "policy_bench.hpp"

namespace ciuic::testing {

// dtype_tests.cpp
void dtypes_are_known(const TestContext& context);
void dtypes_are_pure(const TestContext& context);
void masters_are_wide(const TestContext& context);

// loss_scale_tests.cpp
void loss_scale_is_finite(const TestContext& context);
void loss_scale_changes_in_update_only(const TestContext& context);
void loss_scale_follows_updates_only(const TestContext& context);
void loss_scale_is_saved(const TestContext& context);
void loss_scale_falls(const TestContext& context);
void loss_scale_grows(const TestContext& context);
void loss_scale_stays_one(const TestContext& context);

// published_scale_tests.cpp
void loss_scale_is_as_published(const TestContext& context);

// format_tests.cpp
void format_reads_shapes_only(const TestContext& context);
void format_sizes_suffice(const TestContext& context);
void casts_repeat(const TestContext& context);
void casts_honour_strides(const TestContext& context);

// cast_tests.cpp
void cast_rounds_to_even(const TestContext& context);
void cast_saturates_as_declared(const TestContext& context);
void cast_keeps_nan(const TestContext& context);
void cast_twice_is_cast_once(const TestContext& context);

// block_tests.cpp
void block_scales_cover_their_blocks(const TestContext& context);
void blocks_round_to_even(const TestContext& context);
void ragged_blocks_are_whole(const TestContext& context);
void zero_blocks_stay_zero(const TestContext& context);
void bad_blocks_stay_bad(const TestContext& context);

// gemm_tests.cpp
void hooks_are_pure(const TestContext& context);
void passes_without_hook_are_refused(const TestContext& context);
void gemm_is_close(const TestContext& context);
void gemm_takes_cast_operands(const TestContext& context);
void gemm_adds_beta_times_out(const TestContext& context);
void gemm_honours_strides(const TestContext& context);

// gemm_group_tests.cpp
void gemm_takes_groups(const TestContext& context);
void gemm_keeps_casts_by_version(const TestContext& context);

}  // namespace ciuic::testing
