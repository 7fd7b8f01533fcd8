// SPDX-License-Identifier: MIT
//
// The correct plugin that the mutants of this folder are made from: a profiler that counts events,
// keeps a block of the host's memory, and has a state. Each fault hides one piece of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include <ciuic/profiler.hpp>

namespace ciuic::mutants {

class Subject : public Profiler {
 public:
  static constexpr const char* name = "subject";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "counts events; base of deliberately broken plugins";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options =
      option_table(option_i64("categories", 10, 1, 10, "Listens to the first so many categories"),
                   option_string("label", "events", "A text that stands in its log lines"));

  explicit Subject(const Context& context)
      : Profiler(context),
        categories_(context.options().i64("categories")),
        label_(context.options().string("label")),
        block_(context.host(), context.device(), 256) {
    std::memset(block_.data(), 0, block_.size());
  }

  [[nodiscard]] uint64_t mask() const noexcept override {
    return (uint64_t{2} << static_cast<unsigned>(categories_)) - 2;
  }
  void emit(ArrayView<ciuic_event> events) noexcept override { count_ += events.size(); }
  void flush(int64_t) override { host().debug(label_ + ": " + std::to_string(count_)); }

  void save(const StateWriter& writer) override {
    writer.blob("count", std::to_string(count_.load()));
  }
  void load(const StateReader& reader) override { count_ = parse(reader.blob("count")); }

 protected:
  /// Decimal digits and nothing else.
  static uint64_t parse(const std::string& text) {
    if (text.empty() || text.size() > 18 ||
        text.find_first_not_of("0123456789") != std::string::npos) {
      throw Error(CIUIC_DATA_LOSS, "state: the count is no number");
    }
    return std::stoull(text);
  }

  int64_t categories_;
  std::string label_;
  Buffer block_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace ciuic::mutants
