// SPDX-License-Identifier: MIT
//
// ciuic: one command line, one file per command. Links no LibTorch: --help answers at once.
#include <cstdio>
#include <cstring>
#include <iostream>

#include "core/launch/version.h"
#include "tools/ciuic/commands.h"
#include "tools/ciuic/worker_process.h"

namespace ciuic::tools {
namespace {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};

int evaluate(const Arguments& arguments) { become_worker("evaluate", arguments); }
int estimate(const Arguments& arguments) { become_worker("estimate", arguments); }
int replay(const Arguments& arguments) { become_worker("replay-product", arguments); }
int generate(const Arguments& arguments) { become_worker("generate", arguments); }

constexpr Command kCommands[] = {
    {"train", "trains the model that a TOML file describes", &train},
    {"evaluate", "loss, logits and gradients of a model on given tokens", &evaluate},
    {"generate", "continues a prompt", &generate},
    {"replay", "computes what train --debug numbers kept again", &replay},
    {"estimate", "memory and FLOPs of a run, before it starts", &estimate},
    {"bench", "where the time and memory of a run's steps go", &bench},
    {"config", "checks, shows and documents configurations", &config},
    {"plugin", "lists and inspects plugins", &plugin},
    {"tokenize", "writes the tokens of texts to files for training", &tokenize},
    {"checkpoint", "lists, verifies and converts checkpoints", &checkpoint},
};

/// Commands of the contract that this version does not have: named, so that nobody looks for a
/// typing error.
constexpr const char* kLater[] = {"doctor", "report", "top", "import-deepspeed"};

void print_help() {
  std::cout << "usage: ciuic COMMAND [ARGUMENTS]\n\n"
               "Trains DeepSeek-style language models from one TOML file, assembled from "
               "plugins.\n\nCommands:\n";
  for (const Command& c : kCommands) {
    std::printf("  %-11s %s\n", c.name, c.summary);
  }
  std::cout << "\n  ciuic COMMAND --help    options and examples of a command\n"
               "  ciuic --version         versions of ciuic, its plugin ABI and its libraries\n\n"
               "Examples:\n"
               "  ciuic train configs/quickstart.toml\n"
               "  ciuic generate --model runs/quickstart --prompt \"In the beginning\"\n";
}

void print_versions() {
  for (const auto& [name, version] : core::versions()) {
    std::cout << name << " " << version << "\n";
  }
}

int dispatch(const Arguments& all) {
  if (all.empty() || all[0] == "--help" || all[0] == "-h" || all[0] == "help") {
    print_help();
    return all.empty() ? static_cast<int>(core::ExitCode::Usage) : 0;
  }
  if (all[0] == "--version") {
    print_versions();
    return 0;
  }
  for (const Command& c : kCommands) {
    if (all[0] == c.name) {
      return c.run({all.begin() + 1, all.end()});
    }
  }
  for (const char* later : kLater) {
    if (all[0] == later) {
      throw core::Failure(core::ExitCode::Usage,
                          "ciuic " + all[0] + " is not built yet in this version",
                          "see ciuic --help");
    }
  }
  throw core::Failure(core::ExitCode::Usage, "there is no command \"" + all[0] + "\"",
                      "see ciuic --help");
}

}  // namespace
}  // namespace ciuic::tools

int main(int argc, char** argv) {
  const ciuic::tools::Arguments arguments(argv + 1, argv + argc);
  return ciuic::tools::run_command(
      [&] { return ciuic::tools::dispatch(arguments); },
      [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); });
}
