// SPDX-License-Identifier: MIT
#include "loss_scale.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <ciuic/error.hpp>

namespace ciuic::plugins::fp16 {
namespace {

const char* name_of(Scaler scaler) {
  switch (scaler) {
    case Scaler::DeepSpeed:
      return "deepspeed";
    case Scaler::Megatron:
      return "megatron";
    default:
      return "static";
  }
}

double published_initial(Scaler scaler) { return scaler == Scaler::Megatron ? 0x1p32 : 0x1p16; }

void check_power_of_two(const char* option, double value) {
  int exponent = 0;
  if (!(value > 0) || std::frexp(value, &exponent) != 0.5) {
    throw Error(CIUIC_INVALID, std::string(option) + " = " + std::to_string(value) +
                                   " would round every gradient; use a power of two");
  }
}

}  // namespace

Scaler scaler_named(const std::string& name) {
  for (const Scaler scaler : {Scaler::DeepSpeed, Scaler::Megatron, Scaler::Static}) {
    if (name == name_of(scaler)) {
      return scaler;
    }
  }
  throw Error(CIUIC_INVALID, "scaler = \"" + name + "\", expected deepspeed, megatron or static");
}

LossScale::LossScale(const Config& config)
    : config_(config),
      scale_(config.initial != 0 ? config.initial : published_initial(config.scaler)),
      hysteresis_(config.hysteresis) {
  check_power_of_two("initial_scale", scale_);
  check_power_of_two("minimum_scale", config.minimum);
  if (scale_ < config.minimum) {
    throw Error(CIUIC_INVALID, "initial_scale = " + std::to_string(scale_) +
                                   " is below minimum_scale = " + std::to_string(config.minimum) +
                                   "; start at the minimum or above");
  }
}

void LossScale::update(bool is_finite) {
  if (config_.scaler != Scaler::Static) {
    is_finite ? clean() : overflow();
  }
  ++step_;
}

void LossScale::overflow() {
  clean_steps_ = 0;
  last_overflow_ = step_;
  if (hysteresis_ > 1) {
    --hysteresis_;
    return;
  }
  is_exhausted_ = scale_ == config_.minimum;
  if (is_exhausted_ && config_.scaler == Scaler::DeepSpeed) {
    throw Error(
        CIUIC_ABORTED,
        "gradients are not finite at the smallest loss scale, " + std::to_string(config_.minimum) +
            ": this is NaN or a real explosion, not fp16's range. Go on from an earlier "
            "checkpoint with a lower learning rate or another seed, look at the tensor that "
            "the skipped steps name, or train in bf16");
  }
  scale_ = std::max(scale_ / 2, config_.minimum);
}

void LossScale::clean() {
  ++clean_steps_;
  bool grows = clean_steps_ == config_.window;
  if (config_.scaler == Scaler::DeepSpeed) {
    const int64_t stable = step_ - last_overflow_ - 1;
    grows = stable > 0 && stable % config_.window == 0;
  }
  if (grows) {
    clean_steps_ = 0;
    hysteresis_ = config_.hysteresis;
    scale_ *= 2;
    is_exhausted_ = false;
  }
}

std::string LossScale::text() const {
  std::ostringstream out;
  out << name_of(config_.scaler) << ' ' << std::ilogb(scale_) << ' ' << hysteresis_ << ' ' << step_
      << ' ' << last_overflow_ << ' ' << clean_steps_;
  return out.str();
}

void LossScale::restore(const std::string& text) {
  std::istringstream in(text);
  std::string scaler;
  int exponent = 0;
  LossScale read = *this;
  in >> scaler >> exponent >> read.hysteresis_ >> read.step_ >> read.last_overflow_ >>
      read.clean_steps_;
  if (!in || exponent < -1022 || exponent > 1023) {
    throw Error(CIUIC_DATA_LOSS, "the saved loss scale is \"" + text +
                                     "\", expected: scaler exponent hysteresis step "
                                     "last-overflow clean-steps");
  }
  const double scale = std::ldexp(1.0, exponent);
  if (scaler == name_of(config_.scaler)) {
    *this = read;
  }
  if (config_.scaler != Scaler::Static) {
    scale_ = std::max(scale, config_.minimum);
  }
}

}  // namespace ciuic::plugins::fp16
