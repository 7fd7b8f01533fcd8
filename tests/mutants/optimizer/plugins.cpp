// SPDX-License-Identifier: MIT
//
// The plain rules as plugins: six that are right, and one for each fault.
#include <array>

#include "plain_rules.h"

namespace ciuic::mutants {
namespace {

template <typename Base>
class Labelled : public Base {
 public:
  using Base::Base;
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "an optimizer for tests of the conformance kit";
};

/// fp32 moments, and the published rule unless something is wrong.
template <typename Self>
class NamedAdamW : public Labelled<PlainAdamW> {
 public:
  explicit NamedAdamW(const Context& context) : Labelled<PlainAdamW>(context, Self::fault, kF32) {}
  static constexpr std::array<const char*, 2> features{"rule:adamw", nullptr};
};

class StatelessSgd final : public Labelled<PlainSgd> {
 public:
  using Labelled<PlainSgd>::Labelled;
  static constexpr const char* name = "stateless_sgd";
  static constexpr std::array<const char*, 2> features{"rule:sgd", nullptr};
};
class Blocks64 final : public Labelled<BlockRule> {
 public:
  using Labelled<BlockRule>::Labelled;
  static constexpr const char* name = "blocks_of_64";
};
class WholeMatrix final : public Labelled<MatrixRule> {
 public:
  explicit WholeMatrix(const Context& context) : Labelled<MatrixRule>(context, false) {}
  static constexpr const char* name = "whole_matrix";
};
class ForgetsMatrixCopy final : public Labelled<MatrixRule> {
 public:
  explicit ForgetsMatrixCopy(const Context& context) : Labelled<MatrixRule>(context, true) {}
  static constexpr const char* name = "forgets_matrix_copy";
};
/// Half the state, another rule in its last bits: it claims none.
class NarrowMoments final : public Labelled<PlainAdamW> {
 public:
  explicit NarrowMoments(const Context& context)
      : Labelled<PlainAdamW>(context, Fault::kNone, kBF16) {}
  static constexpr const char* name = "bf16_moments";
};

/// The bf16 copy is rounded by chance.
template <typename Self>
class ByChance : public Labelled<PlainAdamW> {
 public:
  explicit ByChance(const Context& context) : Labelled<PlainAdamW>(context, Self::fault, kF32) {}
  static constexpr std::array<const char*, 3> features{"rule:adamw", "rounding:stochastic",
                                                       nullptr};
};
class StochasticCopy final : public ByChance<StochasticCopy> {
 public:
  using ByChance<StochasticCopy>::ByChance;
  static constexpr const char* name = "stochastic_copy";
  static constexpr Fault fault = Fault::kRoundsBySeed;
};
class RoundsByPlace final : public ByChance<RoundsByPlace> {
 public:
  using ByChance<RoundsByPlace>::ByChance;
  static constexpr const char* name = "rounds_by_place";
  static constexpr Fault fault = Fault::kRoundsByPlace;
};
class RoundsFar final : public ByChance<RoundsFar> {
 public:
  using ByChance<RoundsFar>::ByChance;
  static constexpr const char* name = "rounds_far";
  static constexpr Fault fault = Fault::kRoundsFar;
};

// NOLINTBEGIN: a row for each plugin
#define CIUIC_ADAMW(Class, text, which)          \
  class Class final : public NamedAdamW<Class> { \
   public:                                       \
    using NamedAdamW<Class>::NamedAdamW;         \
    static constexpr const char* name = text;    \
    static constexpr Fault fault = which;        \
  };

CIUIC_ADAMW(ScalarAdamW, "scalar_adamw", Fault::kNone)
CIUIC_ADAMW(NoBiasCorrection, "no_bias_correction", Fault::kNoBiasCorrection)
CIUIC_ADAMW(DecayCoupled, "decay_coupled", Fault::kDecayCoupled)
CIUIC_ADAMW(TruncatesCopy, "truncates_copy", Fault::kTruncatesCopy)
CIUIC_ADAMW(KeepsOwnState, "keeps_own_state", Fault::kKeepsOwnState)
CIUIC_ADAMW(DependsOnRange, "depends_on_range", Fault::kDependsOnRange)
CIUIC_ADAMW(WritesPastEnd, "writes_past_end", Fault::kWritesPastEnd)
CIUIC_ADAMW(EpsilonInsideRoot, "epsilon_inside_root", Fault::kEpsilonInsideRoot)
CIUIC_ADAMW(IgnoresDecayFactor, "ignores_decay_factor", Fault::kIgnoresDecayFactor)
CIUIC_ADAMW(AppliesLrScaleAgain, "applies_lr_scale_again", Fault::kAppliesLrScaleAgain)
CIUIC_ADAMW(IgnoresGradScale, "ignores_grad_scale", Fault::kIgnoresGradScale)
CIUIC_ADAMW(WritesGradient, "writes_gradient", Fault::kWritesGradient)
CIUIC_ADAMW(CopiesTensors, "copies_tensors", Fault::kCopiesTensors)
CIUIC_ADAMW(ForgetsCopy, "forgets_copy", Fault::kForgetsCopy)
CIUIC_ADAMW(SpreadsNan, "spreads_nan", Fault::kSpreadsNan)
CIUIC_ADAMW(SeedUnsaid, "seed_unsaid", Fault::kRoundsBySeed)
// NOLINTEND

}  // namespace
}  // namespace ciuic::mutants

namespace m = ciuic::mutants;
CIUIC_PLUGINS(m::StatelessSgd, m::Blocks64, m::NarrowMoments, m::ScalarAdamW, m::NoBiasCorrection,
              m::DecayCoupled, m::TruncatesCopy, m::KeepsOwnState, m::DependsOnRange,
              m::WritesPastEnd, m::EpsilonInsideRoot, m::IgnoresDecayFactor, m::AppliesLrScaleAgain,
              m::IgnoresGradScale, m::WritesGradient, m::CopiesTensors, m::ForgetsCopy,
              m::SpreadsNan, m::SeedUnsaid, m::StochasticCopy, m::RoundsByPlace, m::RoundsFar,
              m::WholeMatrix, m::ForgetsMatrixCopy)
