// SPDX-License-Identifier: MIT
#include "runner.hpp"

#include <csignal>
#include <cstring>
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
    if (fnmatch(pattern.c_str(), test.id, 0) == 0) {
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

/// In the server: result, message, output, seconds.
Message run_one(const Arguments& arguments, const Task& task, const LoadedPlugin* mapped) {
  const Scratch scratch;
  const double limit = limit_of(arguments, *task.test);
  const Ended ended =
      run_isolated([&] { return run_here(arguments, task, mapped, scratch.path()); }, limit);
  Message out = ended.message ? *ended.message : Message{"failed", describe_end(ended, limit)};
  out.push_back(ended.output);
  out.push_back(std::to_string(ended.seconds));
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

[[noreturn]] void serve(const Arguments& arguments, bool map_once, const std::vector<Task>& tasks,
                        int results) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 0;
  try {
    Mapped mapped(arguments, map_once);
    for (const Task& task : tasks) {
      if (!write_message(results, run_one(arguments, task, mapped.get(task.plugin.index)))) {
        break;
      }
    }
  } catch (const std::exception& e) {
    write_message(results, {"failed", std::string("the kit itself failed: ") + e.what(), "", "0"});
    code = 1;
  }
  _exit(code);
}

Result result_named(const std::string& name) {
  return name == "passed" ? Result::Passed : name == "skipped" ? Result::Skipped : Result::Failed;
}

std::string repro(const Arguments& arguments, const Task& task) {
  std::string out = "ciuic-check " + arguments.path + " --plugin " + task.plugin.name + " --test " +
                    task.test->id + " --seed " + std::to_string(arguments.seed);
  for (const auto& [key, value] : arguments.settings) {
    out += " --set '" + key + "=" + value + "'";
  }
  return out;
}

Outcome outcome_of(const Arguments& arguments, const Task& task,
                   const std::optional<Message>& message) {
  Outcome out;
  out.plugin = task.plugin;
  out.test = task.test;
  out.repro = repro(arguments, task);
  if (!message) {
    out.message = "not run: the process that has the library mapped died";
    return out;
  }
  out.result = result_named(message->at(0));
  out.message = message->at(1);
  out.output = out.result == Result::Failed ? message->at(2) : "";
  out.seconds = std::stod(message->at(3));
  return out;
}

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
  for (const Task& task : tasks) {
    starts(task);
    ended(outcome_of(arguments, task, read_message(ends[0], -1)));
  }
  close(ends[0]);
  waitpid(server, nullptr, 0);
}

}  // namespace ciuic::testing
