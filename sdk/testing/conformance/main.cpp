// SPDX-License-Identifier: MIT
//
// ciuic-check: proves a plugin library against the contract. See usage().
#include <cstdio>
#include <filesystem>

#include "report.hpp"
#include "runner.hpp"
#include "runner_message.hpp"

namespace ciuic::testing {
namespace {

enum Exit { kPassed = 0, kFailed = 1, kUsage = 2, kNotAPlugin = 3 };

void require_known_tests(const Arguments& arguments) {
  for (const std::string& id : arguments.tests) {
    Arguments one;
    one.tests = {id};
    if (chosen_tests(one, 0).empty()) {
      throw UsageError("--test: there is no test " + id + "; --list shows all");
    }
  }
  if (!arguments.expect_failure.empty() && chosen_tests(arguments, 0).empty()) {
    throw UsageError("--expect-failure: there is no test " + arguments.expect_failure);
  }
}

std::vector<std::unique_ptr<Report>> make_reports(const Arguments& arguments) {
  std::vector<std::unique_ptr<Report>> out;
  out.push_back(arguments.json ? make_json_report() : make_text_report());
  if (!arguments.junit.empty()) {
    out.push_back(make_junit_report(arguments.junit));
  }
  return out;
}

std::vector<Task> make_tasks(const Arguments& arguments, const Library& library) {
  std::vector<Task> out;
  for (const PluginInfo& plugin : library.plugins) {
    for (const TestCase* test : chosen_tests(arguments, plugin.kind)) {
      out.push_back({plugin, test});
    }
  }
  if (out.empty()) {
    throw UsageError("no test fits: those chosen are for plugins of another kind");
  }
  return out;
}

/// Each plugin that was chosen must fail the one test.
int expected_failure(const Run& run) {
  const size_t failures = run.count(Result::Failed);
  if (failures == run.outcomes.size()) {
    return kPassed;
  }
  std::fprintf(stderr, "ciuic-check: expected %s to fail: it did not\n",
               run.arguments.expect_failure.c_str());
  return kFailed;
}

int list(const Arguments& arguments) {
  Arguments all = arguments;
  if (all.tests.empty()) {
    all.level = 4;
  }
  if (arguments.path.empty()) {
    print_tests(chosen_tests(all, 0), arguments.format);
    return kPassed;
  }
  std::vector<const TestCase*> tests;
  for (const PluginInfo& plugin : look_at(arguments).plugins) {
    for (const TestCase* test : chosen_tests(all, plugin.kind)) {
      if (std::find(tests.begin(), tests.end(), test) == tests.end()) {
        tests.push_back(test);
      }
    }
  }
  print_tests(tests, arguments.format);
  return kPassed;
}

int check(const Arguments& arguments) {
  const std::vector<std::unique_ptr<Report>> reports = make_reports(arguments);
  const Library library = look_at(arguments);
  const std::vector<Task> tasks = make_tasks(arguments, library);
  Run run{arguments, library.plugins, tasks.size(), library.advice, {}, 0};
  const auto tell = [&](auto what) {
    for (const std::unique_ptr<Report>& report : reports) {
      what(*report);
    }
  };
  const int64_t begin = now_ns();
  tell([&](Report& r) { r.begin(run); });
  run_tasks(
      arguments, library, tasks,
      [&](const Task& task) { tell([&](Report& r) { r.starts(task.plugin, *task.test); }); },
      [&](const Outcome& outcome) {
        tell([&](Report& r) { r.ended(outcome); });
        run.outcomes.push_back(outcome);
      });
  run.seconds = static_cast<double>(now_ns() - begin) / 1e9;
  tell([&](Report& r) { r.end(run); });
  if (!arguments.expect_failure.empty()) {
    return expected_failure(run);
  }
  return run.count(Result::Failed) == 0 ? kPassed : kFailed;
}

int run(int argc, const char* const* argv) {
  Arguments arguments = parse_arguments(argc, argv);
  if (arguments.help) {
    std::fputs(usage(), stdout);
    return kPassed;
  }
  require_known_tests(arguments);
  if (!arguments.path.empty()) {  // dlopen searches elsewhere for a name without a slash
    arguments.path = std::filesystem::absolute(arguments.path).string();
  }
  return arguments.list ? list(arguments) : check(arguments);
}

}  // namespace
}  // namespace ciuic::testing

int main(int argc, char** argv) {
  using namespace ciuic::testing;
  try {
    return run(argc, argv);
  } catch (const UsageError& e) {
    std::fprintf(stderr, "ciuic-check: %s\nsee ciuic-check --help\n", e.what());
    return kUsage;
  } catch (const NotAPlugin& e) {
    std::fprintf(stderr, "ciuic-check: %s is no plugin that can be loaded: %s\n", argv[1],
                 e.what());
    return kNotAPlugin;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ciuic-check: %s\n", e.what());
    return kFailed;
  }
}
