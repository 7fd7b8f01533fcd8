// SPDX-License-Identifier: MIT
//
// Precision "bf16": matrices and activations in bf16; gradients, masters and moments in fp32, so
// that small updates and long accumulations are not rounded away (Mixed Precision Training,
// arXiv:1710.03740, sec. 3.1). bf16 has the range of fp32, so the loss is not scaled.
//
// Norms and the router's gate stay in fp32: DeepSeek-V3 (arXiv:2412.19437, sec. 3.3.1) keeps them
// there even under fp8.
#include <string_view>

#include <ciuic/precision.hpp>

namespace ciuic::plugins {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// Modules whose few numbers decide much: layer norms, the router's gate and its bias.
bool is_sensitive(std::string_view module) {
  return module.find("norm") != std::string_view::npos || ends_with(module, ".mlp.gate") ||
         ends_with(module, ".e_score_correction_bias");
}

class Bf16 final : public Precision {
 public:
  static constexpr const char* name = "bf16";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary =
      "bf16 matrices and activations, fp32 gradients, masters, moments, norms and router";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  using Precision::Precision;

  [[nodiscard]] ciuic_dtype dtype_for(std::string_view module, uint32_t role) const override {
    switch (role) {
      case CIUIC_ROLE_VALUE:
      case CIUIC_ROLE_COMPUTE:
        return is_sensitive(module) ? kF32 : kBF16;
      case CIUIC_ROLE_ACTIVATION:
      case CIUIC_ROLE_ACTIVATION_GRAD:
        return kBF16;
      default:
        return kF32;
    }
  }
};

}  // namespace
}  // namespace ciuic::plugins

CIUIC_PLUGINS(ciuic::plugins::Bf16)
