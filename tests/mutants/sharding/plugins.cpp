// SPDX-License-Identifier: MIT
//
// The plain sharding as plugins: two that are right, and one for each fault.
#include <array>

#include "sharded.h"

namespace ciuic::mutants {
namespace {

template <typename Self>
class Named : public Sharded {
 public:
  explicit Named(const Context& context) : Sharded(context, Self::traits) {}
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr std::array<const char*, 2> features{"norm:params", nullptr};
  static constexpr const char* summary = "a sharding for tests of the conformance kit";
};

// NOLINTBEGIN: a row for each plugin
#define CIUIC_SHARDING(Class, text, ...)         \
  class Class final : public Named<Class> {      \
   public:                                       \
    using Named<Class>::Named;                   \
    static constexpr const char* name = text;    \
    static constexpr Traits traits{__VA_ARGS__}; \
  };

CIUIC_SHARDING(GathersOnBind, "gathers_on_bind", Fault::kNone)
CIUIC_SHARDING(OddOrder, "odd_order", Fault::kNone, true, true)
CIUIC_SHARDING(ExtentsOverlap, "extents_overlap", Fault::kExtentsOverlap)
CIUIC_SHARDING(ExtentsGap, "extents_gap", Fault::kExtentsGap)
CIUIC_SHARDING(PlanReadsClock, "plan_reads_clock", Fault::kPlanReadsClock)
CIUIC_SHARDING(RanksPlanDifferently, "ranks_plan_differently", Fault::kRanksPlanDifferently)
CIUIC_SHARDING(NormCountsTiedTwice, "norm_counts_tied_twice", Fault::kNormCountsTiedTwice)
CIUIC_SHARDING(NormIsLocal, "norm_is_local", Fault::kNormIsLocal)
CIUIC_SHARDING(NormOfAll, "norm_of_all", Fault::kNormOfAll)
CIUIC_SHARDING(SkipSteps, "skip_steps", Fault::kSkipSteps)
CIUIC_SHARDING(OverwritesSecond, "overwrites_second_micro_batch",
               Fault::kOverwritesSecondMicroBatch)
CIUIC_SHARDING(ForgetsLast, "forgets_last_bucket", Fault::kForgetsLastParameter)
CIUIC_SHARDING(ReshardsWrongly, "reshards_wrongly", Fault::kReshardsWrongly)
CIUIC_SHARDING(IgnoresLrScale, "ignores_lr_scale", Fault::kIgnoresLrScale)
CIUIC_SHARDING(AveragesGradients, "averages_gradients", Fault::kAveragesGradients)
CIUIC_SHARDING(InnerDropFrees, "inner_drop_frees", Fault::kInnerDropFrees)
CIUIC_SHARDING(RollbackKeeps, "rollback_keeps_gradients", Fault::kRollbackKeepsGradients)
CIUIC_SHARDING(SwallowsErrors, "swallows_errors", Fault::kSwallowsErrors)
CIUIC_SHARDING(CountsIdle, "counts_idle", Fault::kCountsIdle)
CIUIC_SHARDING(ReusesBucket, "reuses_bucket", Fault::kReusesBucket)
// NOLINTEND

}  // namespace
}  // namespace ciuic::mutants

namespace m = ciuic::mutants;
CIUIC_PLUGINS(m::GathersOnBind, m::OddOrder, m::ExtentsOverlap, m::ExtentsGap, m::PlanReadsClock,
              m::RanksPlanDifferently, m::NormCountsTiedTwice, m::NormIsLocal, m::NormOfAll,
              m::SkipSteps, m::OverwritesSecond, m::ForgetsLast, m::ReshardsWrongly,
              m::IgnoresLrScale, m::AveragesGradients, m::InnerDropFrees, m::RollbackKeeps,
              m::SwallowsErrors, m::CountsIdle, m::ReusesBucket)
