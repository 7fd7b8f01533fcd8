// SPDX-License-Identifier: MIT
//
// ciuic plugin ACTION: the plugin author's and platform team's bench. One file per action in
// plugin/.
#include <cstdio>
#include <iostream>

#include "tools/ciuic/commands.h"
#include "tools/ciuic/plugin/actions.h"
#include "tools/ciuic/worker_process.h"

namespace ciuic::tools {
namespace {

struct Action {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};

constexpr Action kActions[] = {
    {"list", "every plugin on the search path, and every file that is refused", &plugin_list},
    {"inspect", "one plugin: descriptor, options, file, and how loading it goes", &plugin_inspect},
    {"schema", "a plugin's options as Markdown, TOML or JSON Schema", &plugin_schema},
    {"check", "proves a plugin by the conformance kit", &plugin_check},
    {"new", "a project for a plugin of any kind that builds and passes the kit", &plugin_new},
    {"lock", "writes ciuic.lock: the plugins of a run by their sha256", &plugin_lock},
    {"diff", "can one library replace another?", &plugin_diff},
    {"replay", "runs a log of the decorator record again, and compares", &plugin_replay},
    {"quarantine", "what crashed while it was looked at: list, add, remove, clear",
     &plugin_quarantine},
};

void print_help() {
  std::cout << "usage: ciuic plugin ACTION [ARGUMENTS]\n\nActions:\n";
  for (const Action& a : kActions) {
    std::printf("  %-11s %s\n", a.name, a.summary);
  }
  std::fflush(stdout);
  std::cout << "\n  ciuic plugin ACTION --help    options and examples of an action\n"
               "\nExamples:\n  ciuic plugin new communicator my_ring\n  ciuic plugin check "
               "build/libmy_ring.so\n"
               "  ciuic plugin inspect ./libmy_ring.so\n  ciuic plugin lock run.toml\n";
}

std::string names() {
  std::string all;
  for (const Action& a : kActions) {
    all += (all.empty() ? "" : ", ") + std::string(a.name);
  }
  return all;
}

}  // namespace

int plugin(const Arguments& arguments) {
  if (arguments.empty()) {
    throw core::Failure(core::ExitCode::Usage, "no ACTION is given, expected " + names(),
                        "see ciuic plugin --help");
  }
  if (arguments[0] == "--help" || arguments[0] == "-h") {
    print_help();
    return 0;
  }
  for (const Action& a : kActions) {
    if (arguments[0] == a.name) {
      quieten_libtorch();
      return a.run({arguments.begin() + 1, arguments.end()});
    }
  }
  throw core::Failure(core::ExitCode::Usage, "got \"" + arguments[0] + "\", expected " + names(),
                      "see ciuic plugin --help");
}

}  // namespace ciuic::tools
