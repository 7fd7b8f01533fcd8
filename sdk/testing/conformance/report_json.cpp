// SPDX-License-Identifier: MIT
//
// The report for programs: one JSON object on stdout.
#include <cstdio>

#include "report.hpp"
#include "vt_slots.hpp"

namespace ciuic::testing {
namespace {

/// Bytes that are no UTF-8 become '?': what a plugin wrote may be anything.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  char code[8];
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += {'\\', static_cast<char>(c)};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7f) {
      std::snprintf(code, sizeof(code), "\\u%04x", c);
      out += code;
    } else {
      out += c < 0x80 ? static_cast<char>(c) : '?';
    }
  }
  return out + "\"";
}

const char* result_name(Result result) {
  switch (result) {
    case Result::Passed:
      return "passed";
    case Result::Skipped:
      return "skipped";
    default:
      return "failed";
  }
}

class JsonReport final : public Report {
 public:
  void end(const Run& run) override {
    std::printf("{\n  \"file\": %s,\n  \"seed\": %llu,\n", quoted(run.arguments.path).c_str(),
                static_cast<unsigned long long>(run.arguments.seed));
    print_plugins(run);
    std::printf(
        "  \"passed\": %zu,\n  \"failed\": %zu,\n  \"skipped\": %zu,\n  \"seconds\": %.3f,\n",
        run.count(Result::Passed), run.count(Result::Failed), run.count(Result::Skipped),
        run.seconds);
    std::printf("  \"advice\": [");
    for (size_t i = 0; i < run.advice.size(); ++i) {
      std::printf("%s%s", i == 0 ? "" : ", ", quoted(run.advice[i]).c_str());
    }
    std::printf("],\n  \"tests\": [");
    for (size_t i = 0; i < run.outcomes.size(); ++i) {
      std::printf("%s\n    ", i == 0 ? "" : ",");
      print_outcome(run.outcomes[i]);
    }
    std::printf("\n  ]\n}\n");
  }

  void refused(const Arguments& arguments, const std::string& why) override {
    std::printf("{\n  \"file\": %s,\n  \"seed\": %llu,\n  \"error\": %s\n}\n",
                quoted(arguments.path).c_str(), static_cast<unsigned long long>(arguments.seed),
                quoted(why).c_str());
  }

 private:
  static void print_plugins(const Run& run) {
    std::printf("  \"plugins\": [");
    for (size_t i = 0; i < run.plugins.size(); ++i) {
      const PluginInfo& p = run.plugins[i];
      std::printf("%s{\"name\": %s, \"kind\": \"%s\", \"version\": %s}", i == 0 ? "" : ", ",
                  quoted(p.name).c_str(), kind_name(p.kind), quoted(p.version).c_str());
    }
    std::printf("],\n");
  }
  static void print_outcome(const Outcome& o) {
    std::printf(
        "{\"plugin\": %s, \"id\": \"%s\", \"level\": %d, \"result\": \"%s\", \"seconds\": %.3f",
        quoted(o.plugin.name).c_str(), o.test->id, o.test->level, result_name(o.result), o.seconds);
    if (!o.message.empty()) {
      std::printf(", \"message\": %s", quoted(o.message).c_str());
    }
    if (o.result == Result::Failed) {
      std::printf(", \"output\": %s, \"repro\": %s", quoted(o.output).c_str(),
                  quoted(o.repro).c_str());
    }
    std::printf("}");
  }
};

}  // namespace

std::unique_ptr<Report> make_json_report() { return std::make_unique<JsonReport>(); }

}  // namespace ciuic::testing
