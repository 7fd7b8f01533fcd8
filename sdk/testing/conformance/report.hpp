// SPDX-License-Identifier: MIT
//
// What a run of the kit came to, and who is told: a person, JUnit, JSON.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ciuic/testing/conformance.hpp>

#include "runner_arguments.hpp"

namespace ciuic::testing {

struct PluginInfo {
  uint32_t index = 0;
  uint32_t kind = 0;
  std::string name, version;
};

enum class Result { Passed, Failed, Skipped };

struct Outcome {
  PluginInfo plugin;
  const TestCase* test = nullptr;
  Result result = Result::Failed;
  std::string message;  // why it failed or was skipped
  std::string output;   // what a failed test wrote to stdout and stderr
  double seconds = 0;
  std::string repro;  // the command that runs this test again
};

/// One run over the plugins of a library.
struct Run {
  const Arguments& arguments;
  std::vector<PluginInfo> plugins;
  size_t num_tests = 0;
  std::vector<std::string> advice;  // not failures
  std::vector<Outcome> outcomes;
  double seconds = 0;

  [[nodiscard]] size_t count(Result result) const;
};

/// A report cannot be written: exit code 6.
class NotWritten : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Told as a run goes on. Throws NotWritten; what goes to stdout is looked at at the end of all.
class Report {
 public:
  virtual ~Report() = default;
  virtual void begin(const Run&) {}
  virtual void starts(const PluginInfo&, const TestCase&) {}
  virtual void ended(const Outcome&) {}
  virtual void end(const Run&) = 0;
  /// Instead of all of these: the file cannot be loaded as a plugin.
  virtual void refused(const Arguments&, const std::string& /*why*/) {}
};

std::unique_ptr<Report> make_text_report();
std::unique_ptr<Report> make_json_report();
/// Throws UsageError when the file cannot be made. It is written at the end, so that a run that is
/// cut short leaves what was there.
std::unique_ptr<Report> make_junit_report(const std::string& path);

/// The tests with level, kind and what they prove.
void print_tests(const std::vector<const TestCase*>& tests, Format format);

}  // namespace ciuic::testing
