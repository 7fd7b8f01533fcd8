// SPDX-License-Identifier: MIT
//
// Optimizer "adamw": torch.optim.AdamW (Decoupled Weight Decay Regularization, arXiv:1711.05101),
// with moments in fp32 or, as DeepSeek-V3 keeps them (arXiv:2412.19437, section 3.3.3), in bf16.
// Left out: amsgrad.
//
// The arithmetic is fp32 in all cases. bf16 moments are rounded by chance unless asked otherwise: to
// nearest, an average stands still once a step moves it by less than half a unit in its last place,
// 1/512 of it; beta2 above 0.998 is then never followed.
#include <array>
#include <string>
#include <vector>

#include <ciuic/optimizer.hpp>

#include "optimizer/adamw_rule.h"
#include "optimizer/update_pass.h"
#include "optimizer/weight_decay.h"

namespace ciuic::plugins::adamw {
namespace {

using optimizer::NumberFormat;
using optimizer::StateFormat;

class AdamW final : public Optimizer {
 public:
  static constexpr const char* name = "adamw";
  static constexpr const char* version = "1.1.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "Adam with decoupled weight decay, as torch.optim.AdamW";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  static constexpr std::array<const char*, 3> features{"rule:adamw", "rounding:stochastic",
                                                       nullptr};
  static constexpr uint32_t kShared = CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL;
  static constexpr std::array<const char*, 3> kMoments{"fp32", "bf16", nullptr};
  static constexpr std::array<const char*, 3> kRoundings{"stochastic", "nearest", nullptr};
  inline static const auto options = option_table(
      option_f64("beta1", 0.9, 0.0, 1.0, "Decay of the mean of gradients; below 1", kShared),
      option_f64("beta2", 0.95, 0.0, 1.0, "Decay of the mean of squared gradients; below 1",
                 kShared),
      option_f64("epsilon", 1e-8, 0.0, 1.0, "Added to the root of the second moment", kShared),
      option_f64("weight_decay", 0.1, 0.0, 100.0,
                 "Decoupled weight decay: a step multiplies the values by 1 - lr * weight_decay",
                 kShared),
      optimizer::WeightDecay::no_decay_option(kShared),
      option_enum("moments", "fp32", kMoments.data(),
                  "How both moments are kept: bf16 takes half the memory", kShared),
      option_enum("moment_rounding", "stochastic", kRoundings.data(),
                  "How bf16 moments are rounded: by chance, which keeps averages unbiased, or to "
                  "nearest even",
                  kShared));

  explicit AdamW(const Context& context)
      : Optimizer(context),
        rule_{context.options().f64("beta1"), context.options().f64("beta2"),
              context.options().f64("epsilon")},
        weight_decay_(context.options()),
        pass_(host(), name, state_format(context.options())) {
    validate(context);
    const ciuic_dtype dtype = pass_.state().format == NumberFormat::F32 ? kF32 : kBF16;
    specs_ = {moment_spec("exp_avg", dtype), moment_spec("exp_avg_sq", dtype)};
  }

  static void validate(const Context& context) {
    for (const char* beta : {"beta1", "beta2"}) {
      if (const double value = context.options().f64(beta); !(value < 1)) {
        throw Error(CIUIC_INVALID,
                    std::string(beta) + " = " + std::to_string(value) +
                        " keeps the first value of its moment for ever; use less than 1");
      }
    }
  }

  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }

  void update(ArrayView<ciuic_update> updates, const ciuic_stream* stream) const override {
    pass_.run_with(
        optimizer::all_of(updates), stream,
        [&](const ciuic_update& u) { return adamw_scalars(rule_, u, weight_decay_.of(u)); },
        optimizer::adamw_update);
  }

 private:
  static StateFormat state_format(const Options& options) {
    const bool is_narrow = options.string("moments") == "bf16";
    return {2, is_narrow ? NumberFormat::BF16 : NumberFormat::F32,
            options.string("moment_rounding") == "stochastic"};
  }

  optimizer::AdamWOptions rule_;
  optimizer::WeightDecay weight_decay_;
  optimizer::UpdatePass pass_;
  std::vector<ciuic_state_spec> specs_;
};

}  // namespace
}  // namespace ciuic::plugins::adamw

CIUIC_PLUGINS(ciuic::plugins::adamw::AdamW)
