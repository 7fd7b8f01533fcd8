// SPDX-License-Identifier: MIT
//
// The report for build servers: JUnit's XML, a suite per plugin.
#include <cstdio>
#include <fstream>

#include "report.hpp"
#include "vt_slots.hpp"

namespace ciuic::testing {
namespace {

/// XML 1.0 has no way to write most control characters; they, and bytes above ASCII (which may be
/// no UTF-8), become '?'.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        out += byte < 0x20 || byte >= 0x7f ? '?' : c;
    }
  }
  return out;
}

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return text;
}

class JunitReport final : public Report {
 public:
  explicit JunitReport(const std::string& path) : path_(path), out_(path) {
    if (!out_) {
      throw UsageError("--junit: cannot write " + path);
    }
  }
  void end(const Run& run) override {
    out_ << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\""
         << run.outcomes.size() << "\" failures=\"" << run.count(Result::Failed) << "\" time=\""
         << seconds(run.seconds) << "\">\n";
    for (const PluginInfo& plugin : run.plugins) {
      suite(run, plugin);
    }
    out_ << "</testsuites>\n";
    out_.flush();
    if (!out_) {
      std::fprintf(stderr, "ciuic-check: cannot write %s: no space?\n", path_.c_str());
    }
  }

 private:
  void suite(const Run& run, const PluginInfo& plugin) {
    size_t tests = 0;
    size_t failures = 0;
    size_t skipped = 0;
    for (const Outcome& o : run.outcomes) {
      if (o.plugin.index == plugin.index) {
        ++tests;
        failures += o.result == Result::Failed ? 1 : 0;
        skipped += o.result == Result::Skipped ? 1 : 0;
      }
    }
    out_ << "  <testsuite name=\"" << escaped(plugin.name) << "\" tests=\"" << tests
         << "\" failures=\"" << failures << "\" skipped=\"" << skipped << "\" errors=\"0\">\n";
    for (const Outcome& o : run.outcomes) {
      if (o.plugin.index == plugin.index) {
        test_case(o);
      }
    }
    out_ << "  </testsuite>\n";
  }
  void test_case(const Outcome& o) {
    out_ << "    <testcase classname=\"" << kind_name(o.plugin.kind) << "."
         << escaped(o.plugin.name) << "\" name=\"" << o.test->id << "\" time=\""
         << seconds(o.seconds) << "\"";
    if (o.result == Result::Passed) {
      out_ << "/>\n";
      return;
    }
    out_ << ">\n      <" << (o.result == Result::Failed ? "failure" : "skipped") << " message=\""
         << escaped(o.message) << "\"";
    if (o.result == Result::Failed) {
      out_ << ">" << escaped("repro: " + o.repro + "\n" + o.output) << "</failure>\n";
    } else {
      out_ << "/>\n";
    }
    out_ << "    </testcase>\n";
  }

  std::string path_;
  std::ofstream out_;
};

}  // namespace

std::unique_ptr<Report> make_junit_report(const std::string& path) {
  return std::make_unique<JunitReport>(path);
}

}  // namespace ciuic::testing
