// SPDX-License-Identifier: MIT
//
// The report for build servers: JUnit's XML, a suite per plugin.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "report.hpp"
#include "vt_slots.hpp"

namespace ciuic::testing {
namespace {

constexpr const char* kHead = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

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
  explicit JunitReport(std::string path) : path_(std::move(path)) {
    if (!std::ofstream(path_, std::ios::app)) {
      throw UsageError("--junit: cannot write " + path_);
    }
  }
  void end(const Run& run) override {
    out_ << kHead << "<testsuites tests=\"" << run.outcomes.size() << "\" failures=\""
         << run.count(Result::Failed) << "\" time=\"" << seconds(run.seconds) << "\">\n";
    for (const PluginInfo& plugin : run.plugins) {
      suite(run, plugin);
    }
    out_ << "</testsuites>\n";
    write();
  }
  void refused(const Arguments& arguments, const std::string& why) override {
    out_ << kHead << "<testsuites tests=\"1\" failures=\"0\" errors=\"1\">\n"
         << "  <testsuite name=\"" << escaped(arguments.path)
         << "\" tests=\"1\" failures=\"0\" skipped=\"0\" errors=\"1\">\n"
         << "    <testcase classname=\"ciuic-check\" name=\"load\">\n      <error message=\""
         << escaped("no plugin that can be loaded: " + why)
         << "\"/>\n    </testcase>\n  </testsuite>\n</testsuites>\n";
    write();
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

  void write() {
    std::ofstream file(path_, std::ios::trunc);
    file << out_.str();
    if (!file.flush()) {
      throw NotWritten(path_ + " cannot be written; is the disk full?");
    }
  }

  std::string path_;
  std::ostringstream out_;
};

}  // namespace

std::unique_ptr<Report> make_junit_report(const std::string& path) {
  return std::make_unique<JunitReport>(path);
}

}  // namespace ciuic::testing
