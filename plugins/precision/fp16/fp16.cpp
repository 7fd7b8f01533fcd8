// SPDX-License-Identifier: MIT
//
// Precision "fp16": matrices and activations in fp16; gradients, masters and moments in fp32. fp16
// reaches down to 6e-8 only, so the loss is multiplied by a scale that follows the gradients: it
// falls when they overflow and grows back (Mixed Precision Training, arXiv:1710.03740, sec. 3.2).
//
// Gradients of parameters are fp32: a product's sum is not squeezed into fp16 again, and sums over
// micro-batches and ranks keep their small terms.
#include <array>
#include <string_view>

#include <ciuic/precision.hpp>

#include "loss_scale.h"
#include "precision/sensitive_modules.h"

namespace ciuic::plugins::fp16 {
namespace {

constexpr const char* kScalers[] = {"deepspeed", "megatron", "static", nullptr};
constexpr double kLargest = 0x1p126;  // a scaled loss still fits fp32

LossScale::Config config_from(const Options& options) {
  LossScale::Config config;
  config.scaler = scaler_named(options.string("scaler"));
  config.initial = options.f64("initial_scale");
  config.window = options.i64("window");
  config.hysteresis = options.i64("hysteresis");
  config.minimum = options.f64("minimum_scale");
  return config;
}

class Fp16 final : public Precision {
 public:
  static constexpr const char* name = "fp16";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary =
      "fp16 matrices and activations under a loss scale, fp32 gradients, masters and norms";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  static constexpr std::array<const char*, 5> features{"loss_scale:dynamic", "loss_scale:deepspeed",
                                                       "loss_scale:megatron",
                                                       "loss_scale:power_of_two", nullptr};
  static constexpr uint32_t kShared = CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL;
  inline static const auto options = option_table(
      option_enum("scaler", "deepspeed", kScalers,
                  "Rule of the loss scale: DeepSpeed's, Megatron's, or a constant", kShared),
      option_f64("initial_scale", 0, 0, kLargest,
                 "First scale, a power of two; 0: as published, 2^16 (deepspeed, static) or 2^32 "
                 "(megatron)",
                 kShared),
      option_i64("window", 1000, 1, int64_t{1} << 40, "Clean steps before the scale doubles",
                 kShared),
      option_i64("hysteresis", 2, 1, int64_t{1} << 40, "Overflows before the scale halves",
                 kShared),
      option_f64("minimum_scale", 1, 0x1p-126, kLargest, "The scale falls no further", kShared));

  explicit Fp16(const Context& context)
      : Precision(context),
        is_first_(context.rank() == 0),
        scale_(config_from(context.options())) {}

  static void validate(const Context& context) { (void)LossScale(config_from(context.options())); }

  [[nodiscard]] ciuic_dtype dtype_for(std::string_view module, uint32_t role) const override {
    switch (role) {
      case CIUIC_ROLE_VALUE:
      case CIUIC_ROLE_COMPUTE:
        return precision::is_sensitive(module) ? kF32 : kF16;
      case CIUIC_ROLE_ACTIVATION:
      case CIUIC_ROLE_ACTIVATION_GRAD:
        return kF16;
      default:
        return kF32;
    }
  }

  [[nodiscard]] double loss_scale() const override { return scale_.value(); }

  void update(const ciuic_precision_update& update) override {
    const bool was_exhausted = scale_.is_exhausted();
    scale_.update(update.non_finite == 0);
    if (scale_.is_exhausted() && !was_exhausted && is_first_) {
      host().warn(
          "the loss scale is at its minimum and gradients still are not finite; steps are "
          "skipped until they are");
    }
  }

  void save(const StateWriter& out) override { out.blob("loss_scale", scale_.text()); }
  void load(const StateReader& in) override {
    if (in.entries().size() != 0) {  // none: the run comes from a policy without a loss scale
      scale_.restore(in.blob("loss_scale"));
    }
  }

 private:
  bool is_first_;
  LossScale scale_;
};

}  // namespace
}  // namespace ciuic::plugins::fp16

CIUIC_PLUGINS(ciuic::plugins::fp16::Fp16)
