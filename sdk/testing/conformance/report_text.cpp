// SPDX-License-Identifier: MIT
//
// The report for a person: a line per failed or skipped test, the reason indented below it, a
// summary. On a terminal it also shows which test is running.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <unistd.h>

#include "report.hpp"
#include "vt_slots.hpp"

namespace ciuic::testing {

size_t Run::count(Result result) const {
  return static_cast<size_t>(std::count_if(outcomes.begin(), outcomes.end(),
                                           [&](const Outcome& o) { return o.result == result; }));
}

namespace {

class TextReport final : public Report {
 public:
  void begin(const Run& run) override {
    several_ = run.plugins.size() > 1;
    total_ = run.num_tests;
    for (const PluginInfo& p : run.plugins) {
      std::printf("%s%s%s %s (%s)\n", bold(), p.name.c_str(), plain(), p.version.c_str(),
                  kind_name(p.kind));
    }
    std::printf("%zu tests, seed %llu\n", run.num_tests,
                static_cast<unsigned long long>(run.arguments.seed));
    for (const std::string& line : run.advice) {
      std::printf("  %sadvice%s  %s\n", yellow(), plain(), line.c_str());
    }
    std::fflush(stdout);
  }
  void starts(const PluginInfo&, const TestCase& test) override {
    if (terminal_) {
      std::printf("\r\033[K  [%zu/%zu] %s", done_ + 1, total_, test.id);
      std::fflush(stdout);
    }
  }
  void ended(const Outcome& o) override {
    ++done_;
    if (terminal_) {
      std::printf("\r\033[K");
    }
    if (o.result == Result::Failed) {
      failed(o);
    } else if (o.result == Result::Skipped) {
      std::printf("  %sskip%s  %s: %s\n", yellow(), plain(), title(o).c_str(), o.message.c_str());
    }
    std::fflush(stdout);
  }
  void end(const Run& run) override {
    const size_t failures = run.count(Result::Failed);
    std::printf("%s%s%s: %zu passed, %zu failed, %zu skipped in %.1f s\n",
                failures > 0 ? red() : green(), failures > 0 ? "FAILED" : "ok", plain(),
                run.count(Result::Passed), failures, run.count(Result::Skipped), run.seconds);
    skipped(run);
  }

 private:
  void failed(const Outcome& o) {
    std::printf("  %sFAIL%s  %s (%.1f s): %s\n", red(), plain(), title(o).c_str(), o.seconds,
                o.test->proves);
    indented(o.message);
    if (!o.output.empty()) {
      indented("it wrote:\n" + o.output);
    }
    indented("repro: " + o.repro);
  }
  /// Green is no proof of what was not tried: says so where that is much, with the commonest reasons.
  static void skipped(const Run& run) {
    constexpr size_t kMuch = 4;  // a quarter
    constexpr size_t kReasons = 3;
    const size_t count = run.count(Result::Skipped);
    if (count * kMuch < run.outcomes.size() || count == 0) {
      return;
    }
    std::map<std::string, size_t> by_reason;
    for (const Outcome& o : run.outcomes) {
      if (o.result == Result::Skipped) {
        ++by_reason[o.message.substr(0, o.message.find(':'))];
      }
    }
    std::vector<std::pair<std::string, size_t>> reasons(by_reason.begin(), by_reason.end());
    std::stable_sort(reasons.begin(), reasons.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    std::printf("not tried, as the plugin does not offer it: %zu of %zu tests", count,
                run.outcomes.size());
    for (size_t i = 0; i < std::min(kReasons, reasons.size()); ++i) {
      std::printf("%s%s (%zu)", i == 0 ? "; " : ", ", reasons[i].first.c_str(), reasons[i].second);
    }
    std::printf("%s\n", reasons.size() > kReasons ? ", ..." : "");
  }
  static void indented(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::printf("        %s\n", line.c_str());
    }
  }
  [[nodiscard]] std::string title(const Outcome& o) const {
    return several_ ? o.plugin.name + ": " + o.test->id : o.test->id;
  }
  [[nodiscard]] const char* colour(const char* code) const { return colours_ ? code : ""; }
  [[nodiscard]] const char* red() const { return colour("\033[31m"); }
  [[nodiscard]] const char* green() const { return colour("\033[32m"); }
  [[nodiscard]] const char* yellow() const { return colour("\033[33m"); }
  [[nodiscard]] const char* bold() const { return colour("\033[1m"); }
  [[nodiscard]] const char* plain() const { return colour("\033[0m"); }

  bool terminal_ = isatty(STDOUT_FILENO) == 1;
  bool colours_ = terminal_ && std::getenv("NO_COLOR") == nullptr;
  bool several_ = false;
  size_t total_ = 0;
  size_t done_ = 0;
};

}  // namespace

std::unique_ptr<Report> make_text_report() { return std::make_unique<TextReport>(); }

}  // namespace ciuic::testing
