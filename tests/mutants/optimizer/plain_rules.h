// SPDX-License-Identifier: MIT
//
// Element-wise rules, correct and slow, in which each mutant differs in one place, marked by its
// fault. They take every float type that the SDK's testing headers can read and write; numbers are
// computed in float.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <ciuic/optimizer.hpp>
#include <ciuic/testing/numbers.hpp>

namespace ciuic::mutants {

enum class Fault {
  kNone,
  kNoBiasCorrection,
  kDecayCoupled,
  kTruncatesCopy,
  kKeepsOwnState,
  kDependsOnRange,
  kWritesPastEnd,
  kEpsilonInsideRoot,
  kIgnoresDecayFactor,
  kAppliesLrScaleAgain,
  kIgnoresGradScale,
  kWritesGradient,
  kCopiesTensors,
  kForgetsCopy,
  kSpreadsNan,
  kRoundsBySeed,   // right where it is announced
  kRoundsByPlace,  // in the range, not in the parameter
  kRoundsFar
};

/// AdamW (arXiv:1711.05101, algorithm 2).
class PlainAdamW : public Optimizer {
 public:
  PlainAdamW(const Context& context, Fault fault, ciuic_dtype moment);

  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }
  void update(ArrayView<ciuic_update> updates, const ciuic_stream*) const override;

  static constexpr uint32_t kShared = CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL;
  inline static const auto options = option_table(
      option_f64("beta1", 0.9, 0.0, 1.0, "Decay of the mean of gradients", kShared),
      option_f64("beta2", 0.95, 0.0, 1.0, "Decay of the mean of squared gradients", kShared),
      option_f64("epsilon", 1e-8, 0.0, 1.0, "Added to the root of the second moment", kShared),
      option_f64("weight_decay", 0.1, 0.0, 100.0, "Decoupled weight decay", kShared));

 private:
  struct Scalars {
    float step_size, correction2, decay, coupled;
  };
  [[nodiscard]] bool is(Fault fault) const { return fault_ == fault; }
  [[nodiscard]] Scalars scalars_of(const ciuic_update& u) const;
  void apply(const ciuic_update& u) const;
  [[nodiscard]] float element(const Scalars& s, float value, float grad, float& mean,
                              float& square) const;
  void store_copy(const ciuic_update& u, int64_t i, float master) const;
  [[nodiscard]] uint16_t by_chance(const ciuic_update& u, int64_t i, float master) const;

  Fault fault_;
  float beta1_, beta2_, epsilon_;
  double weight_decay_;
  std::vector<ciuic_state_spec> specs_;
  mutable std::vector<float> own_mean_;  // of kKeepsOwnState
};

/// torch.optim.SGD without momentum: no state at all.
class PlainSgd : public Optimizer {
 public:
  explicit PlainSgd(const Context& context)
      : Optimizer(context), weight_decay_(context.options().f64("weight_decay")) {}

  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }
  void update(ArrayView<ciuic_update> updates, const ciuic_stream*) const override;

  inline static const auto options =
      option_table(option_f64("weight_decay", 0.01, 0.0, 100.0, "Decay, as part of the gradient"));

 private:
  double weight_decay_;
  std::vector<ciuic_state_spec> specs_;
};

/// Blocks of 64 share one second moment: a rule that needs its granules whole.
class BlockRule : public Optimizer {
 public:
  static constexpr int64_t kBlock = 64;
  explicit BlockRule(const Context& context) : Optimizer(context) {
    specs_.push_back(moment_spec("block_square", kF32, 0.25));
    specs_[0].granule = kBlock;
  }
  [[nodiscard]] int64_t granule(const ciuic_param&) const override { return kBlock; }
  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }
  void update(ArrayView<ciuic_update> updates, const ciuic_stream*) const override;

 private:
  std::vector<ciuic_state_spec> specs_;
};

/// Gradients divided by their norm over a whole matrix; plain descent for the rest. A rule that needs
/// matrices whole, and keeps nothing.
class MatrixRule : public Optimizer {
 public:
  MatrixRule(const Context& context, bool forgets_copy)
      : Optimizer(context), forgets_copy_(forgets_copy) {}
  [[nodiscard]] int64_t granule(const ciuic_param& p) const override {
    return p.ndim == 2 ? p.num_elements : 1;
  }
  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }
  void update(ArrayView<ciuic_update> updates, const ciuic_stream*) const override;

 private:
  bool forgets_copy_;  // of matrices
  std::vector<ciuic_state_spec> specs_;
};

// ---- one element of a tensor ----

inline float read_at(const ciuic_tensor& t, int64_t i) {
  return static_cast<float>(testing::load_element(t.t.dtype, testing::element_at(t, i)));
}
inline void write_at(const ciuic_tensor& t, int64_t i, float value) {
  testing::store_element(t.t.dtype, testing::element_at(t, i), value);
}
/// These rules compute in float: a wider master would lose bits.
inline const ciuic_tensor& master_of(const ciuic_update& u) {
  const ciuic_tensor& master = u.master != nullptr ? *u.master : *u.value;
  if (master.t.dtype.bits > 32) {
    throw Error(CIUIC_UNIMPLEMENTED,
                "masters are fp32 or narrower, got " + dtype_name(master.t.dtype));
  }
  return master;
}

}  // namespace ciuic::mutants
