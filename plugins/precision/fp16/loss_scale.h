// SPDX-License-Identifier: MIT
//
// The loss scale of fp16, as the two published automata and as a constant.
//
//   deepspeed  runtime/fp16/loss_scaler.py: halves once hysteresis is spent; doubles when
//              (steps since the last overflow) - 1 is a multiple of the window, so first after
//              window + 1 clean steps; an overflow at the minimum is an error
//   megatron   core/optimizer/grad_scaler.py: the same fall; doubles after exactly `window` clean
//              steps; stays at the minimum
//   static     never moves
//
// The scale is a power of two always: it moves exponents and rounds nothing, so that scaling and
// unscaling cancel to the bit.
#pragma once

#include <cstdint>
#include <string>

namespace ciuic::plugins::fp16 {

enum class Scaler { DeepSpeed, Megatron, Static };

/// Throws INVALID for other words.
Scaler scaler_named(const std::string& name);

class LossScale {
 public:
  struct Config {
    Scaler scaler = Scaler::DeepSpeed;
    double initial = 0;  // 0: as published
    int64_t window = 1000;
    int64_t hysteresis = 2;
    double minimum = 1;
  };

  /// Throws INVALID for scales that are no powers of two, or below the minimum.
  explicit LossScale(const Config& config);

  [[nodiscard]] double value() const { return scale_; }
  /// After a step. Throws ABORTED where the published rule ends with an error.
  void update(bool is_finite);
  /// It overflowed at the minimum and can fall no further.
  [[nodiscard]] bool is_exhausted() const { return is_exhausted_; }

  /// The state as one line of text, and back. A line of another scaler gives its scale alone.
  /// Throws DATA_LOSS for anything else.
  [[nodiscard]] std::string text() const;
  void restore(const std::string& text);

 private:
  void overflow();
  void clean();

  Config config_;
  double scale_;
  int64_t hysteresis_;          // overflows left before the scale falls
  int64_t step_ = 0;            // deepspeed's clock
  int64_t last_overflow_ = -1;  // by that clock
  int64_t clean_steps_ = 0;     // megatron's, in a row
  bool is_exhausted_ = false;
};

}  // namespace ciuic::plugins::fp16
