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

enum Exit { kPassed = 0, kFailed = 1, kUsage = 2, kNotAPlugin = 3, kNotWritten = 6 };

constexpr int kHighestLevel = 4;

void require_known_tests(const Arguments& arguments) {
  for (const std::string& id : arguments.tests) {
    Arguments one;
    one.tests = {id};
    one.level = arguments.level;
    if (!chosen_tests(one, 0).empty()) {
      continue;
    }
    one.level = kHighestLevel;
    throw UsageError(chosen_tests(one, 0).empty()
                         ? "--test: there is no test " + id + "; --list shows all"
                         : "--test: " + id + " fits tests above level " +
                               std::to_string(arguments.level) + " only; give --level " +
                               std::to_string(chosen_tests(one, 0).front()->level));
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
  if (arguments.path.empty()) {
    print_tests(chosen_tests(arguments, 0), arguments.format);
    return kPassed;
  }
  std::vector<const TestCase*> tests;
  for (const PluginInfo& plugin : look_at(arguments).plugins) {
    for (const TestCase* test : chosen_tests(arguments, plugin.kind)) {
      if (std::find(tests.begin(), tests.end(), test) == tests.end()) {
        tests.push_back(test);
      }
    }
  }
  print_tests(tests, arguments.format);
  return kPassed;
}

using Reports = std::vector<std::unique_ptr<Report>>;

/// One that cannot be loaded is told to the reports too, as a program reads only them.
Library look_at(const Arguments& arguments, const Reports& reports) {
  try {
    return look_at(arguments);
  } catch (const NotAPlugin& e) {
    for (const std::unique_ptr<Report>& report : reports) {
      report->refused(arguments, e.what());
    }
    throw;
  }
}

int check(const Arguments& arguments) {
  const Reports reports = make_reports(arguments);
  const Library library = look_at(arguments, reports);
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

int run(const Arguments& arguments) {
  if (arguments.help) {
    std::fputs(usage(), stdout);
    return kPassed;
  }
  require_known_tests(arguments);
  return arguments.list ? list(arguments) : check(arguments);
}

int fail(Exit code, const std::string& text) {
  std::fprintf(stderr, "ciuic-check: %s\n", text.c_str());
  return code;
}

int run(int argc, const char* const* argv) {
  Arguments arguments;
  try {
    arguments = parse_arguments(argc, argv);
    if (!arguments.path.empty()) {  // dlopen searches elsewhere for a name without a slash
      arguments.path = std::filesystem::absolute(arguments.path).string();
    }
    if (arguments.list) {  // of all levels
      arguments.level = kHighestLevel;
    }
    return run(arguments);
  } catch (const UsageError& e) {
    return fail(kUsage, std::string(e.what()) + "\nsee ciuic-check --help");
  } catch (const NotAPlugin& e) {
    return fail(kNotAPlugin,
                arguments.path + " is no plugin that can be loaded: " + std::string(e.what()));
  } catch (const NotWritten& e) {
    return fail(kNotWritten, e.what());
  } catch (const std::exception& e) {
    return fail(kFailed, e.what());
  }
}

}  // namespace
}  // namespace ciuic::testing

int main(int argc, char** argv) {
  using namespace ciuic::testing;
  const int code = run(argc, argv);
  // What a full disk swallowed must not look like success.
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return is_written || code != kPassed
             ? code
             : fail(kNotWritten, "stdout cannot be written; is the disk full?");
}
