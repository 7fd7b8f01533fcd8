// SPDX-License-Identifier: MIT
//
// Mapping and unmapping: the library's constructors and destructors run in the host's process.
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

#include "../captured_output.hpp"
#include "../process_state.hpp"
#include "../runner_message.hpp"
#include "../runner_process.hpp"
#include "library_copy.hpp"
#include "load_tests.hpp"

namespace ciuic::testing {
namespace {

using Library = std::unique_ptr<void, int (*)(void*)>;

Library map(const std::string& path) {
  Library out(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), dlclose);
  require(out != nullptr,
          std::string("the library cannot be mapped: ") + (out == nullptr ? dlerror() : ""));
  return out;
}

size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    ++count;
  }
  return count;
}

}  // namespace

void loading_changes_nothing(const TestContext& t) {
  const auto expect_none = [](const std::string& changed) {
    require(changed.empty(),
            "mapping the library changed " + changed +
                "; these belong to the host: leave them alone, in constructors too");
  };
  expect_none(changed_by_mapping());
  const std::string copy = copy_library(t.path, t.scratch + "/copy");
  const CapturedOutput captured;  // first: where 1 and 2 point is a setting too
  const ProcessSettings settings = process_settings();
  const Library library = map(copy);
  expect_none(difference(settings, process_settings()));
  const std::string text = captured.text();
  require(text.empty(), "mapping the library wrote to stdout or stderr: \"" + text +
                            "\"; a host that loads plugins may be answering a program");
}

void two_copies_are_apart(const TestContext& t) {
  const LoadedPlugin copy(copy_library(t.path, t.scratch + "/copy"));
  const ciuic_descriptor* here = t.plugin.query(CIUIC_ABI_MAJOR, 0);
  const ciuic_descriptor* there = copy.query(CIUIC_ABI_MAJOR, 0);
  require(here != there,
          "a second copy of the library shows the first one's descriptors: its symbols are shared "
          "(GNU_UNIQUE, or not hidden), so a hot swap would go on running the old code");
  require(std::strcmp(here->name, there->name) == 0, "a second copy of the library holds " +
                                                         std::string(there->name) +
                                                         ", the first holds " + here->name);
}

void reloadable_unloads(const TestContext& t) {
  if ((t.plugin.descriptor().flags & CIUIC_FLAG_RELOADABLE) == 0) {
    throw NotOffered("it does not claim RELOADABLE");
  }
  const std::string copy = copy_library(t.path, t.scratch + "/copy");
  size_t mappings = 0;
  for (int round = 0; round < 20; ++round) {
    {
      const Library library = map(copy);
      const auto query = reinterpret_cast<decltype(&ciuic_plugin_query)>(
          dlsym(library.get(), "ciuic_plugin_query"));
      require(query != nullptr && query(CIUIC_ABI_MAJOR, 0) != nullptr,
              "query(0) is NULL in round " + std::to_string(round));
    }
    const Library resident(dlopen(copy.c_str(), RTLD_NOW | RTLD_NOLOAD), dlclose);
    require(resident == nullptr,
            "it claims RELOADABLE, but after dlclose it is still mapped (round " +
                std::to_string(round) +
                "): a GNU_UNIQUE symbol, a thread_local with a destructor, or a thread keeps it");
    if (round == 1) {
      mappings = count_mappings();
    }
  }
  require(count_mappings() <= mappings, "18 rounds of mapping and unmapping left " +
                                            std::to_string(count_mappings() - mappings) +
                                            " memory mappings behind");
}

/// exit() runs the library's destructors.
void process_exits(const TestContext& t) {
  const double limit = 20 * t.patience;
  const int64_t deadline = now_ns() + static_cast<int64_t>(limit * 1e9);
  const pid_t child = fork();
  if (child == 0) {
    std::exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (now_ns() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      throw CheckFailed("exit() hangs in a process that has the library mapped");
    }
    usleep(1000);
  }
  require(!WIFSIGNALED(status), "exit() crashed in a process that has the library mapped: " +
                                    signal_name(WTERMSIG(status)));
  require(WEXITSTATUS(status) == 0,
          "exit(0) ended with code " + std::to_string(WEXITSTATUS(status)));
}

}  // namespace ciuic::testing
