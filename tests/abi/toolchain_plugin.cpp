// SPDX-License-Identifier: MIT
//
// A profiler that fails on request, built by every toolchain of the matrix. Without exceptions it
// reports; with them it throws.
#include <cstdint>
#include <string>

#include <ciuic/profiler.hpp>

namespace {

void fail(const char* where) {
#if defined(__cpp_exceptions)
  throw ciuic::Error(CIUIC_DATA_LOSS, std::string("failed on request in ") + where, 3);
#else
  ciuic::report(ciuic::Error(CIUIC_DATA_LOSS, std::string("failed on request in ") + where, 3));
#endif
}

class Matrix final : public ciuic::Profiler {
 public:
  static constexpr const char* name = "matrix";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "fails on request";
  static constexpr const char* const kWhere[] = {"never", "create", "flush", nullptr};
  inline static const auto options =
      ciuic::option_table(ciuic::option_enum("fail", "never", kWhere, "Which call fails"));

  explicit Matrix(const ciuic::Context& c)
      : Profiler(c), fails_in_flush_(c.options().string("fail") == "flush") {
    if (c.options().string("fail") == "create") {
      fail("create");
    }
  }
  uint64_t mask() const noexcept override { return ~uint64_t{0}; }
  void emit(ciuic::ArrayView<ciuic_event> events) noexcept override { seen_ += events.size(); }
  void flush(int64_t) override {
    if (fails_in_flush_) {
      fail("flush");
    }
    host().info("seen " + std::to_string(seen_));
  }

 private:
  bool fails_in_flush_;
  uint64_t seen_ = 0;
};

}  // namespace

CIUIC_PLUGINS(Matrix)
