// SPDX-License-Identifier: MIT
//
// Precision "bf16": matrices and activations in bf16; gradients, masters and moments in fp32, so
// that small updates and long accumulations are not rounded away (Mixed Precision Training,
// arXiv:1710.03740, sec. 3.1). bf16 has the range of fp32, so the loss is not scaled.
//
// Without masters ("pure bf16") a matrix is its own master and takes half the memory, but a change
// below half a step of bf16, 1/512 of a weight, vanishes: it warns at the start.
#include <string_view>

#include <ciuic/precision.hpp>

#include "precision/sensitive_modules.h"

namespace ciuic::plugins::precision {
namespace {

class Bf16 final : public Precision {
 public:
  static constexpr const char* name = "bf16";
  static constexpr const char* version = "1.1.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary =
      "bf16 matrices and activations, fp32 gradients, masters, moments, norms and router";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options = option_table(option_bool(
      "masters", true,
      "Keep an fp32 master of each bf16 matrix; false saves 4 bytes a weight and loses updates "
      "below 1/512 of a weight",
      CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL));

  explicit Bf16(const Context& context)
      : Precision(context), has_masters_(context.options().boolean("masters")) {
    if (!has_masters_ && context.rank() == 0) {
      host().warn(
          "masters = false: updates below 1/512 of a weight vanish, as bf16 has 8 bits; weights "
          "may "
          "stop learning without any other sign. precision.bf16.masters = true keeps them");
    }
  }

  [[nodiscard]] ciuic_dtype dtype_for(std::string_view module, uint32_t role) const override {
    const ciuic_dtype narrow = is_sensitive(module) ? kF32 : kBF16;
    switch (role) {
      case CIUIC_ROLE_VALUE:
      case CIUIC_ROLE_COMPUTE:
        return narrow;
      case CIUIC_ROLE_MASTER:
        return has_masters_ ? kF32 : narrow;
      case CIUIC_ROLE_ACTIVATION:
      case CIUIC_ROLE_ACTIVATION_GRAD:
        return kBF16;
      default:
        return kF32;
    }
  }

 private:
  bool has_masters_;
};

}  // namespace
}  // namespace ciuic::plugins::precision

CIUIC_PLUGINS(ciuic::plugins::precision::Bf16)
