// SPDX-License-Identifier: MIT
//
// Runs tests on a library. The runner itself never maps the library: a child looks at it first, and
// then each test has a process of its own.
//
//   runner -- probe          maps the library, says what is in it, ends
//          \- server         has the library mapped; forks itself for every test, with a time limit
//               \- test
//
// A library that starts threads when it is mapped cannot be forked; the server then leaves it alone
// and each test maps it anew.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report.hpp"

namespace ciuic::testing {

/// Every test of the kit.
const std::vector<const TestCase*>& all_tests();

/// Those that the arguments choose for a kind (0: any kind).
std::vector<const TestCase*> chosen_tests(const Arguments& arguments, uint32_t kind);

/// The file cannot be loaded as a plugin at all: exit code 3.
class NotAPlugin : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Library {
  std::vector<PluginInfo> plugins;
  std::vector<std::string> advice;
  bool starts_threads = false;
};

/// Maps the library in a child and asks what it holds. Throws NotAPlugin; UsageError for settings
/// that do not fit.
Library look_at(const Arguments& arguments);

struct Task {
  PluginInfo plugin;
  const TestCase* test;
};

/// Runs tasks in order; `starts` and `ended` are told in this process.
void run_tasks(const Arguments& arguments, const Library& library, const std::vector<Task>& tasks,
               const std::function<void(const Task&)>& starts,
               const std::function<void(const Outcome&)>& ended);

}  // namespace ciuic::testing
