// SPDX-License-Identifier: MIT
//
// Optimizer "lion": Symbolic Discovery of Optimization Algorithms (arXiv:2302.06675), program 1. A
// step moves every value by the learning rate, up or down, so it wants a learning rate 3 to 10 times
// smaller than AdamW's and a weight decay as many times larger (section 5). One moment in fp32: half
// of AdamW's state.
#include <array>
#include <string>
#include <vector>

#include <ciuic/optimizer.hpp>

#include "optimizer/lion_rule.h"
#include "optimizer/update_pass.h"
#include "optimizer/weight_decay.h"

namespace ciuic::plugins::lion {
namespace {

class Lion final : public Optimizer {
 public:
  static constexpr const char* name = "lion";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "The sign of a momentum, with decoupled weight decay";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  static constexpr std::array<const char*, 2> features{"rule:lion", nullptr};
  static constexpr uint32_t kShared = CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL;
  inline static const auto options = option_table(
      option_f64("beta1", 0.9, 0.0, 1.0,
                 "How much of the moment, rather than the gradient, a step's direction has",
                 kShared),
      option_f64("beta2", 0.99, 0.0, 1.0, "Decay of the moment; below 1", kShared),
      option_f64("weight_decay", 0.1, 0.0, 100.0,
                 "Decoupled weight decay: a step multiplies the values by 1 - lr * weight_decay",
                 kShared),
      optimizer::WeightDecay::no_decay_option(kShared));

  explicit Lion(const Context& context)
      : Optimizer(context),
        rule_{context.options().f64("beta1"), context.options().f64("beta2")},
        weight_decay_(context.options()),
        pass_(host(), name, {1}) {
    validate(context);
  }

  static void validate(const Context& context) {
    if (const double beta2 = context.options().f64("beta2"); !(beta2 < 1)) {
      throw Error(CIUIC_INVALID, "beta2 = " + std::to_string(beta2) +
                                     " keeps the moment at 0 for ever; use less than 1");
    }
  }

  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }

  void update(ArrayView<ciuic_update> updates, const ciuic_stream* stream) const override {
    pass_.run_with(
        optimizer::all_of(updates), stream,
        [&](const ciuic_update& u) { return lion_scalars(rule_, u, weight_decay_.of(u)); },
        optimizer::lion_update);
  }

 private:
  optimizer::LionOptions rule_;
  optimizer::WeightDecay weight_decay_;
  optimizer::UpdatePass pass_;
  std::vector<ciuic_state_spec> specs_{moment_spec("exp_avg", kF32)};
};

}  // namespace
}  // namespace ciuic::plugins::lion

CIUIC_PLUGINS(ciuic::plugins::lion::Lion)
