// SPDX-License-Identifier: MIT
//
// A correct fp16 policy: matrices and activations in f16, everything that accumulates in f32, the
// loss scaled as DeepSpeed does (runtime/fp16/loss_scaler.py), casts from f32 and bf16 to f16.
// Hooks are where its broken children differ.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <ciuic/precision.hpp>

namespace ciuic::mutants {

class HalfPolicy : public Precision {
 public:
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr std::array<const char*, 4> features{
      "loss_scale:deepspeed", "loss_scale:power_of_two", "cast:row_major", nullptr};
  inline static const auto options = option_table(
      option_f64("initial_scale", 65536, 1, 4294967296.0, "The first loss scale"),
      option_i64("window", 1000, 1, 1 << 30, "Clean steps before the scale grows"),
      option_i64("hysteresis", 2, 1, 1 << 20, "Overflows in a row that are let pass, plus one"));

  explicit HalfPolicy(const Context& context)
      : Precision(context),
        scale_(context.options().f64("initial_scale")),
        window_(context.options().i64("window")),
        hysteresis_(context.options().i64("hysteresis")),
        left_(hysteresis_) {}

  [[nodiscard]] ciuic_dtype dtype_for(std::string_view module, uint32_t role) const override {
    switch (role) {
      case CIUIC_ROLE_VALUE:
      case CIUIC_ROLE_COMPUTE:
        return module.find("norm") == std::string_view::npos ? kF16 : kF32;
      case CIUIC_ROLE_ACTIVATION:
      case CIUIC_ROLE_ACTIVATION_GRAD:
        return kF16;
      default:
        return kF32;
    }
  }
  [[nodiscard]] double loss_scale() const override { return scale_; }
  void update(const ciuic_precision_update& update) override {
    step(update.non_finite == 0);
    ++steps_;
  }

  void save(const StateWriter& writer) override {
    const double state[] = {scale_, static_cast<double>(left_), static_cast<double>(steps_),
                            static_cast<double>(last_overflow_)};
    writer.blob("loss_scale", {reinterpret_cast<const char*>(state), sizeof(state)});
  }
  void load(const StateReader& reader) override {
    const std::string bytes = reader.blob("loss_scale");
    double state[4];
    if (bytes.size() != sizeof(state)) {
      throw Error(CIUIC_DATA_LOSS, "loss_scale: got " + std::to_string(bytes.size()) +
                                       " bytes, expected " + std::to_string(sizeof(state)));
    }
    std::memcpy(state, bytes.data(), sizeof(state));
    scale_ = state[0];
    left_ = static_cast<int64_t>(state[1]);
    steps_ = static_cast<int64_t>(state[2]);
    last_overflow_ = static_cast<int64_t>(state[3]);
  }

  void format(const ciuic_cast& cast, ciuic_format& out) const override {
    if (!same(dtype_for("", cast.role), kF16) ||
        !(same(cast.in->t.dtype, kF32) || same(cast.in->t.dtype, kBF16))) {
      Precision::format(cast, out);
    }
    out.dtype = kF16;
    out.elements = num_elements(*cast.in);
  }
  void cast(const ciuic_cast& cast, const ciuic_stream*) override {
    if (!is_contiguous(*cast.in)) {
      throw Error(CIUIC_UNIMPLEMENTED, "a cast takes contiguous tensors only");
    }
    const auto* in = static_cast<const char*>(tensor_data(*cast.in));
    auto* out = static_cast<char*>(tensor_data(*cast.out));
    const bool is_f32 = same(cast.in->t.dtype, kF32);
    for (int64_t i = 0; i < num_elements(*cast.in); ++i) {
      float x = 0;
      if (is_f32) {
        std::memcpy(&x, in + 4 * i, 4);
      } else {
        std::memcpy(reinterpret_cast<char*>(&x) + 2, in + 2 * i, 2);
      }
      const uint16_t code = to_half(x);
      std::memcpy(out + 2 * i, &code, 2);
    }
  }

 protected:
  virtual void step(bool is_finite) {
    if (!is_finite) {
      last_overflow_ = steps_;
      if (left_ > 1) {
        --left_;
      } else {
        scale_ = std::max(scale_ / 2, 1.0);
      }
      return;
    }
    const int64_t stable = steps_ - last_overflow_ - 1;
    if (stable > 0 && stable % window_ == 0) {
      left_ = hysteresis_;
      scale_ *= 2;
    }
  }
  /// A whole number of steps of the format, halves up or down.
  [[nodiscard]] virtual float round(float steps) const { return std::nearbyint(steps); }
  [[nodiscard]] virtual uint16_t past_the_largest() const { return 0x7C00; }
  [[nodiscard]] virtual uint16_t not_a_number() const { return 0x7E00; }

  [[nodiscard]] uint16_t to_half(float x) const {
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const float magnitude = std::fabs(x);
    if (std::isnan(x)) {
      return sign | not_a_number();
    }
    if (std::isinf(x)) {
      return sign | 0x7C00;
    }
    // The step is 2^-24 below 2^-14 and 2^-10 of the power of two from there on.
    int exponent = -14;
    if (magnitude >= 0x1p-14F) {
      exponent = std::ilogb(magnitude);
    }
    const float steps = round(std::ldexp(magnitude, 10 - exponent));
    const float value = std::ldexp(steps, exponent - 10);
    if (value > 65504.0F) {
      return sign | past_the_largest();
    }
    if (value < 0x1p-14F) {
      return sign | static_cast<uint16_t>(std::ldexp(value, 24));
    }
    const int e = std::ilogb(value);
    return sign | static_cast<uint16_t>(((e + 15) << 10) +
                                        static_cast<int>(std::ldexp(value, 10 - e)) - 1024);
  }

  double scale_;
  int64_t window_;
  int64_t hysteresis_;
  int64_t left_;  // overflows before the scale falls
  int64_t steps_ = 0;
  int64_t last_overflow_ = -1;
};

}  // namespace ciuic::mutants
