// SPDX-License-Identifier: MIT
//
// Precision "fp32": every role of every module is fp32. The reference that other policies are
// compared with.
#include <string_view>

#include <ciuic/precision.hpp>

namespace ciuic::plugins {
namespace {

class Fp32 final : public Precision {
 public:
  static constexpr const char* name = "fp32";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "fp32 everywhere";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  using Precision::Precision;

  [[nodiscard]] ciuic_dtype dtype_for(std::string_view, uint32_t) const override { return kF32; }
};

}  // namespace
}  // namespace ciuic::plugins

CIUIC_PLUGINS(ciuic::plugins::Fp32)
