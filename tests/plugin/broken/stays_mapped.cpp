// SPDX-License-Identifier: MIT
//
// Says RELOADABLE, and has a symbol that keeps it mapped for ever (GNU_UNIQUE).
#include <ciuic/profiler.hpp>

/// One object in the whole process, whoever instantiates it: g++ makes it unique.
template <typename T>
struct Shared {
  static T value;
};
template <typename T>
T Shared<T>::value{};

class StaysMapped final : public ciuic::Profiler {
 public:
  static constexpr const char* name = "stays_mapped";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "claims to be reloadable";
  static constexpr uint32_t flags = CIUIC_FLAG_RELOADABLE;

  explicit StaysMapped(const ciuic::Context& c) : Profiler(c) { ++Shared<int>::value; }
  [[nodiscard]] uint64_t mask() const noexcept override { return 0; }
  void emit(ciuic::ArrayView<ciuic_event>) noexcept override {}
};
CIUIC_PLUGINS(StaysMapped)
