// SPDX-License-Identifier: MIT
//
// Published dynamic loss scales, as plain automata. A policy that declares the feature
// "loss_scale:deepspeed" or "loss_scale:megatron" must follow them update for update. Its options,
// where it has them, are called initial_scale, window, hysteresis, minimum_scale.
//
//   deepspeed   runtime/fp16/loss_scaler.py: grows after window + 1 clean steps; an overflow at the
//               minimum is an error
//   megatron    core/optimizer/grad_scaler.py: grows after exactly window clean steps; stays at the
//               minimum
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace ciuic::testing {

struct LossScaleSettings {
  double initial_scale;
  int64_t window;
  int64_t hysteresis;
  double minimum_scale;
};

class LossScaleRule {
 public:
  explicit LossScaleRule(const LossScaleSettings& settings)
      : settings_(settings), scale_(settings.initial_scale), hysteresis_(settings.hysteresis) {}
  virtual ~LossScaleRule() = default;

  /// False: the rule ends here with an error.
  virtual bool update(bool is_finite) = 0;
  [[nodiscard]] double scale() const { return scale_; }

 protected:
  LossScaleSettings settings_;
  double scale_;
  int64_t hysteresis_;  // overflows to go before the scale falls
};

class DeepSpeedLossScale final : public LossScaleRule {
 public:
  static constexpr LossScaleSettings kDefaults{65536.0, 1000, 2, 1.0};
  using LossScaleRule::LossScaleRule;

  bool update(bool is_finite) override {
    const bool goes_on = is_finite ? clean() : overflow();
    ++step_;
    return goes_on;
  }

 private:
  bool overflow() {
    if (hysteresis_ > 1) {
      --hysteresis_;
    } else if (scale_ == settings_.minimum_scale) {
      return false;
    } else {
      scale_ = std::max(scale_ / 2, settings_.minimum_scale);
    }
    last_overflow_ = step_;
    return true;
  }
  bool clean() {
    const int64_t stable = step_ - last_overflow_ - 1;
    if (stable > 0 && stable % settings_.window == 0) {
      hysteresis_ = settings_.hysteresis;
      scale_ *= 2;
    }
    return true;
  }

  int64_t step_ = 0;
  int64_t last_overflow_ = -1;
};

class MegatronLossScale final : public LossScaleRule {
 public:
  static constexpr LossScaleSettings kDefaults{4294967296.0, 1000, 2, 1.0};
  using LossScaleRule::LossScaleRule;

  bool update(bool is_finite) override {
    if (!is_finite) {
      clean_ = 0;
      if (--hysteresis_ <= 0) {
        scale_ = std::max(scale_ / 2, settings_.minimum_scale);
      }
    } else if (++clean_ == settings_.window) {
      clean_ = 0;
      hysteresis_ = settings_.hysteresis;
      scale_ *= 2;
    }
    return true;
  }

 private:
  int64_t clean_ = 0;
};

}  // namespace ciuic::testing
