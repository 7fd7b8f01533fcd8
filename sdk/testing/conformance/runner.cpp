// SPDX-License-Identifier: MIT
#include "runner.hpp"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fnmatch.h>
#include <memory>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_state.hpp"
#include "runner_options.hpp"
#include "runner_process.hpp"
#include "runner_stack.hpp"
#include "suites.h"

namespace ciuic::testing {
namespace {

constexpr int kSoakLevel = 4;

// ---- which tests ----

std::vector<TestTable> all_tables() {
  return {static_tests(),     load_tests(),      contract_tests(),  communicator_tests(),
          sharding_tests(),   optimizer_tests(), precision_tests(), batch_scheduler_tests(),
          checkpoint_tests(), profiler_tests(),  soak_tests()};
}

bool is_chosen(const Arguments& arguments, const TestCase& test) {
  if (!arguments.expect_failure.empty()) {
    return arguments.expect_failure == test.id;
  }
  if (arguments.tests.empty()) {
    return test.level <= arguments.level;
  }
  for (const std::string& pattern : arguments.tests) {
    // A soak must not begin because a pattern happened to fit; who writes an id means that test.
    if (pattern == test.id ||
        (test.level <= arguments.level && fnmatch(pattern.c_str(), test.id, 0) == 0)) {
      return true;
    }
  }
  return false;
}

// ---- one test, in its own process ----

/// An empty folder, removed with the object: by the server, as the test may crash.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "ciuic-check-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("cannot make a folder " + name + ": " + std::strerror(errno));
    }
    path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;  // what is left of a killed test's folder is no reason to fail
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Message verdict(const TestCase& test, const TestContext& context) {
  try {
    test.run(context);
    return {"passed", ""};
  } catch (const NotOffered& e) {
    return {"skipped", e.what()};
  } catch (const CheckFailed& e) {
    return {"failed", e.what()};
  } catch (const Error& e) {
    return {"failed",
            std::string("a call failed with \"") + code_name(e.code()) + "\": " + e.what()};
  } catch (const std::exception& e) {
    return {"failed", e.what()};
  }
}

/// The test's working directory: a plugin that writes a relative path by default leaves nothing
/// behind. Beside it the folder that the test gets as scratch, which stays empty until it is used.
std::string enter(const std::string& scratch) {
  std::filesystem::create_directory(scratch + "/cwd");
  std::filesystem::create_directory(scratch + "/files");
  std::filesystem::current_path(scratch + "/cwd");
  return scratch + "/files";
}

/// In the test's process.
Message run_here(const Arguments& arguments, const Task& task, const LoadedPlugin* mapped,
                 const std::string& scratch) {
  try {
    const std::string path = std::filesystem::absolute(arguments.path).string();
    const std::string files = enter(scratch);
    std::optional<LoadedPlugin> own;
    if (mapped == nullptr) {
      const ProcessSettings before = process_settings();
      mapped = &own.emplace(path, task.plugin.index);
      changed_by_mapping() = difference(before, process_settings());
      name_functions_of(mapped->descriptor(), path);
    }
    const OptionValues options = typed_options(mapped->descriptor(), arguments.settings);
    return verdict(*task.test, TestContext{path, *mapped, options, arguments.seed, files,
                                           arguments.patience, arguments.soak_seconds});
  } catch (const std::exception& e) {
    return {"failed", e.what()};
  }
}

double limit_of(const Arguments& arguments, const TestCase& test) {
  return test.time_limit_seconds * arguments.patience +
         (test.level >= kSoakLevel ? arguments.soak_seconds : 0);
}

/// In the server: result, message, output, nanoseconds.
Message run_one(const Arguments& arguments, const Task& task, const LoadedPlugin* mapped,
                int results) {
  const Scratch scratch;
  const double limit = limit_of(arguments, *task.test);
  const Ended ended = run_isolated(
      [&] {
        close(results);  // a test that writes where it must not spoils its own result only
        return run_here(arguments, task, mapped, scratch.path());
      },
      limit);
  Message out = ended.message ? *ended.message : Message{"failed", describe_end(ended, limit)};
  out.push_back(ended.output);
  out.push_back(std::to_string(static_cast<uint64_t>(ended.seconds * 1e9)));
  return out;
}

// ---- the server ----

/// The plugin of a task, mapped once however many tests it has.
class Mapped {
 public:
  Mapped(const Arguments& arguments, bool wanted) : arguments_(arguments), wanted_(wanted) {}

  const LoadedPlugin* get(uint32_t index) {
    if (!wanted_) {
      return nullptr;
    }
    if (!plugin_ || index_ != index) {
      const ProcessSettings before = process_settings();
      plugin_ = std::make_unique<LoadedPlugin>(arguments_.path, index);
      index_ = index;
      changed_by_mapping() += difference(before, process_settings());
      name_functions_of(plugin_->descriptor(), arguments_.path);
    }
    return plugin_.get();
  }

 private:
  const Arguments& arguments_;
  bool wanted_;
  std::unique_ptr<LoadedPlugin> plugin_;
  uint32_t index_ = 0;
};

/// stdout and stderr carry the runner's reports: the library's constructors, which run in the
/// server, must not write into them. What they print is any.load.changes_nothing's to tell.
void keep_quiet() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    dup2(nowhere, fd);
  }
  close(nowhere);
}

[[noreturn]] void serve(const Arguments& arguments, bool map_once, const std::vector<Task>& tasks,
                        int results) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  keep_quiet();
  int code = 0;
  try {
    Mapped mapped(arguments, map_once);
    for (const Task& task : tasks) {
      if (!write_message(results,
                         run_one(arguments, task, mapped.get(task.plugin.index), results))) {
        break;
      }
    }
  } catch (const std::exception& e) {
    write_message(results, {"failed", std::string("the kit itself failed: ") + e.what(), "", "0"});
    code = 1;
  }
  _exit(code);
}

std::optional<Result> result_named(const std::string& name) {
  return name == "passed"    ? std::optional(Result::Passed)
         : name == "skipped" ? std::optional(Result::Skipped)
         : name == "failed"  ? std::optional(Result::Failed)
                             : std::nullopt;
}

std::string repro(const Arguments& arguments, const Task& task) {
  std::string out = "ciuic-check " + arguments.path + " --plugin " + task.plugin.name + " --test " +
                    task.test->id + " --seed " + std::to_string(arguments.seed);
  for (const auto& [key, value] : arguments.settings) {
    out += " --set '" + key + "=" + value + "'";
  }
  return out;
}

/// The server's answers. It has the plugin mapped, so its pipe is read with care: after one answer
/// that is none, nothing is believed.
class Answers {
 public:
  explicit Answers(int fd) : fd_(fd) {}

  void next(Outcome& out) {
    Message m;
    const Arrival arrival = silence_.empty() ? read_message(fd_, -1, m) : Arrival::Nothing;
    const auto result = m.size() == 4 ? result_named(m[0]) : std::nullopt;
    const auto nanoseconds = m.size() == 4 ? whole_number(m[3]) : std::nullopt;
    if (arrival == Arrival::Complete && result && nanoseconds) {
      out.result = *result;
      out.message = m[1];
      out.output = *result == Result::Failed ? m[2] : "";
      out.seconds = static_cast<double>(*nanoseconds) / 1e9;
      return;
    }
    if (silence_.empty()) {
      silence_ = arrival == Arrival::Nothing
                     ? "not run: the process that has the library mapped died"
                     : std::string("not known: the plugin ") + kGarbled;
    }
    out.message = silence_;
  }

 private:
  int fd_;
  std::string silence_;
};

}  // namespace

const std::vector<const TestCase*>& all_tests() {
  static const std::vector<TestTable> tables = all_tables();
  static const std::vector<const TestCase*> tests = [] {
    std::vector<const TestCase*> out;
    for (const TestTable& table : tables) {
      for (const TestCase& test : table) {
        out.push_back(&test);
      }
    }
    return out;
  }();
  return tests;
}

std::vector<const TestCase*> chosen_tests(const Arguments& arguments, uint32_t kind) {
  std::vector<const TestCase*> out;
  for (const TestCase* test : all_tests()) {
    if ((kind == 0 || test->kind == 0 || test->kind == kind) && is_chosen(arguments, *test)) {
      out.push_back(test);
    }
  }
  return out;
}

void run_tasks(const Arguments& arguments, const Library& library, const std::vector<Task>& tasks,
               const std::function<void(const Task&)>& starts,
               const std::function<void(const Outcome&)>& ended) {
  int ends[2];
  if (pipe(ends) != 0) {
    throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  }
  const pid_t server = fork();
  if (server == 0) {
    close(ends[0]);
    serve(arguments, !library.starts_threads, tasks, ends[1]);
  }
  close(ends[1]);
  Answers answers(ends[0]);
  for (const Task& task : tasks) {
    starts(task);
    Outcome outcome;
    outcome.plugin = task.plugin;
    outcome.test = task.test;
    outcome.repro = repro(arguments, task);
    answers.next(outcome);
    ended(outcome);
  }
  close(ends[0]);
  waitpid(server, nullptr, 0);
}

}  // namespace ciuic::testing
