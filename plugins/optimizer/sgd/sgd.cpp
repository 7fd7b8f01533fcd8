// SPDX-License-Identifier: MIT
//
// Optimizer "sgd": torch.optim.SGD with momentum, dampening, Nesterov's momentum (Sutskever et al.,
// 2013) and decay as part of the gradient. Without momentum it keeps no state. The first momentum is
// the first gradient of the run's first update, as in torch. Left out: maximize.
#include <array>
#include <vector>

#include <ciuic/optimizer.hpp>

#include "optimizer/sgd_rule.h"
#include "optimizer/update_pass.h"
#include "optimizer/weight_decay.h"

namespace ciuic::plugins::sgd {
namespace {

class Sgd final : public Optimizer {
 public:
  static constexpr const char* name = "sgd";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "Gradient descent with momentum, as torch.optim.SGD";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  static constexpr std::array<const char*, 2> features{"rule:sgd", nullptr};
  static constexpr uint32_t kShared = CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL;
  inline static const auto options = option_table(
      option_f64("momentum", 0.9, 0.0, 1.0,
                 "Factor on the sum of earlier gradients; 0: no momentum, and no state", kShared),
      option_f64("dampening", 0.0, 0.0, 1.0,
                 "A gradient enters the momentum times 1 - dampening, the first one whole",
                 kShared),
      option_bool("nesterov", false,
                  "Nesterov's momentum: looks one step ahead; needs momentum without dampening",
                  kShared),
      option_f64("weight_decay", 0.0, 0.0, 100.0,
                 "Coupled: the gradient is increased by weight_decay * value", kShared),
      optimizer::WeightDecay::no_decay_option(kShared));

  explicit Sgd(const Context& context)
      : Optimizer(context),
        rule_{context.options().f64("momentum"), context.options().f64("dampening"),
              context.options().boolean("nesterov")},
        weight_decay_(context.options()),
        pass_(host(), name, {rule_.momentum != 0 ? size_t{1} : size_t{0}}) {
    validate(context);
    if (rule_.momentum != 0) {
      specs_ = {moment_spec("momentum_buffer", kF32)};
    }
  }

  static void validate(const Context& context) {
    const Options& o = context.options();
    if (o.boolean("nesterov") && (o.f64("momentum") == 0 || o.f64("dampening") != 0)) {
      throw Error(CIUIC_INVALID, "nesterov = true needs momentum above 0 and dampening 0, got " +
                                     std::to_string(o.f64("momentum")) + " and " +
                                     std::to_string(o.f64("dampening")));
    }
    if (o.f64("dampening") != 0 && o.f64("momentum") == 0) {
      throw Error(CIUIC_INVALID, "dampening = " + std::to_string(o.f64("dampening")) +
                                     " has no effect with momentum = 0; set one of them");
    }
  }

  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }

  void update(ArrayView<ciuic_update> updates, const ciuic_stream* stream) const override {
    pass_.run_with(
        optimizer::all_of(updates), stream,
        [&](const ciuic_update& u) { return sgd_scalars(rule_, u, weight_decay_.of(u)); },
        optimizer::sgd_update);
  }

 private:
  optimizer::SgdOptions rule_;
  optimizer::WeightDecay weight_decay_;
  optimizer::UpdatePass pass_;
  std::vector<ciuic_state_spec> specs_;
};

}  // namespace
}  // namespace ciuic::plugins::sgd

CIUIC_PLUGINS(ciuic::plugins::sgd::Sgd)
