// SPDX-License-Identifier: MIT
//
// Precision policies: dtypes, loss scale, casts, products. Features that a policy may declare:
//
//   loss_scale:dynamic              the scale falls and grows by a rule of its own
//   loss_scale:deepspeed :megatron  by that published rule (testing/loss_scale_rules.hpp)
//   loss_scale:static               a scale other than 1 that never changes
//   loss_scale:power_of_two         every scale is a power of two
//   cast:row_major, cast:saturates, scale:power_of_two, scale:delayed   see cast_bench.hpp
#include "../suites.h"
#include "policy_tests.hpp"

namespace ciuic::testing {

TestTable precision_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_PRECISION;
  return {
      {"precision.dtype.known", 3, kKind, 20,
       "every role of every module, known or not, has a known dtype", dtypes_are_known},
      {"precision.dtype.pure", 3, kKind, 20,
       "dtype_for gives one answer: before attach, after updates, in threads, on all ranks",
       dtypes_are_pure},
      {"precision.dtype.masters", 3, kKind, 20, "a master is at least as wide as its value",
       masters_are_wide},
      {"precision.loss_scale.finite", 3, kKind, 60,
       "never 0, infinite or NaN, after any number of good or bad steps", loss_scale_is_finite},
      {"precision.loss_scale.only_update", 3, kKind, 20,
       "reading it, or any other call, does not change it", loss_scale_changes_in_update_only},
      {"precision.loss_scale.function", 3, kKind, 20,
       "the same updates give the same scales on every rank", loss_scale_follows_updates_only},
      {"precision.loss_scale.saved", 3, kKind, 60,
       "after a save and a load at any update the rest is the same", loss_scale_is_saved},
      {"precision.loss_scale.falls", 3, kKind, 20, "it falls when gradients overflow",
       loss_scale_falls},
      {"precision.loss_scale.grows", 3, kKind, 60, "it grows back after a long clean run",
       loss_scale_grows},
      {"precision.loss_scale.constant", 3, kKind, 20,
       "without scaling it stays at 1; a static one stays", loss_scale_stays_one},
      {"precision.loss_scale.published", 3, kKind, 60,
       "a named published rule is followed update for update", loss_scale_is_as_published},
      {"precision.format.pure", 3, kKind, 30, "format reads shapes only and repeats itself",
       format_reads_shapes_only},
      {"precision.format.sizes", 3, kKind, 30, "cast stays inside the sizes that format says",
       format_sizes_suffice},
      {"precision.cast.repeats", 3, kKind, 30, "the same numbers give the same bytes",
       casts_repeat},
      {"precision.cast.strides", 3, kKind, 30, "strided input is cast rightly or refused",
       casts_honour_strides},
      {"precision.cast.rounding", 3, kKind, 60,
       "all bf16 and f16 numbers and all ties: nearest even, subnormals, signed zeros",
       cast_rounds_to_even},
      {"precision.cast.saturation", 3, kKind, 60,
       "past the largest number comes what the policy declares", cast_saturates_as_declared},
      {"precision.cast.nan", 3, kKind, 30, "NaN stays NaN, infinity does not become small",
       cast_keeps_nan},
      {"precision.cast.idempotent", 3, kKind, 30, "numbers of the format are cast to themselves",
       cast_twice_is_cast_once},
      {"precision.blocks.scale", 3, kKind, 60,
       "a block's scale fits its largest number; errors stay within half a step",
       block_scales_cover_their_blocks},
      {"precision.blocks.rounding", 3, kKind, 30, "beneath a scale: nearest, ties to even",
       blocks_round_to_even},
      {"precision.blocks.ragged", 3, kKind, 30, "blocks at ragged edges are whole",
       ragged_blocks_are_whole},
      {"precision.blocks.zero", 3, kKind, 30, "a block of zeros stays zero", zero_blocks_stay_zero},
      {"precision.blocks.bad", 3, kKind, 30, "NaN and infinity stay visible and inside their block",
       bad_blocks_stay_bad},
      {"precision.gemm.hooks", 3, kKind, 20, "hooks is pure and backed by a gemm", hooks_are_pure},
      {"precision.gemm.unhooked", 3, kKind, 20, "a pass without hook is refused: UNIMPLEMENTED",
       passes_without_hook_are_refused},
      {"precision.gemm.close", 3, kKind, 60,
       "all hooked passes against a product in double, within the stated bound", gemm_is_close},
      {"precision.gemm.cast_operands", 3, kKind, 60, "the same with operands cast beforehand",
       gemm_takes_cast_operands},
      {"precision.gemm.beta", 3, kKind, 60,
       "alpha and beta are honoured; with beta 0 out is not read", gemm_adds_beta_times_out},
      {"precision.gemm.strides", 3, kKind, 60, "gaps between rows are skipped, or refused",
       gemm_honours_strides},
      {"precision.gemm.groups", 3, kKind, 60, "experts' groups, some empty, in all passes",
       gemm_takes_groups},
      {"precision.gemm.versions", 3, kKind, 60,
       "a kept cast of b is used for its version, module and pass only",
       gemm_keeps_casts_by_version},
  };
}

}  // namespace ciuic::testing
