// SPDX-License-Identifier: MIT
// A plugin that cannot start.
#include <ciuic/profiler.hpp>

class ThrowsInCreate final : public ciuic::Profiler {
 public:
  static constexpr const char* name = "throws_in_create";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "cannot start";

  explicit ThrowsInCreate(const ciuic::Context& context) : Profiler(context) {
    throw std::runtime_error("the flux capacitor is empty");
  }
  [[nodiscard]] uint64_t mask() const noexcept override { return 0; }
  void emit(ciuic::ArrayView<ciuic_event>) noexcept override {}
};
CIUIC_PLUGINS(ThrowsInCreate)
