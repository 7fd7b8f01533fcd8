// SPDX-License-Identifier: MIT
//
// ciuic train: checks the run, then either is one rank (a launcher set RANK and WORLD_SIZE) or
// starts and watches its own.
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include "core/launch/environment.h"
#include "core/launch/launcher.h"
#include "core/train/metrics_file.h"
#include "core/train/run_folder.h"
#include "tools/ciuic/check_run.h"
#include "tools/ciuic/commands.h"
#include "tools/ciuic/worker_process.h"

namespace ciuic::tools {
namespace {

using core::ExitCode;
using core::Failure;

CommandLine command_line() {
  CommandLine line(
      "train", "ciuic train FILE [--set KEY=VALUE]... [--ranks N] [--resume auto|none|PATH]",
      "Trains the model that FILE describes. Starts its ranks itself unless a launcher did (RANK "
      "and\n"
      "WORLD_SIZE are set). Ctrl-C or SIGTERM: a checkpoint at the next step, exit code 75; the "
      "same\n"
      "command then goes on.",
      "  ciuic train configs/quickstart.toml\n"
      "  ciuic train run.toml --ranks 2 --set run.steps=1000 --set precision.plugin=bf16\n"
      "  ciuic train run.toml --resume none\n"
      "  torchrun --no-python --nproc-per-node 2 ciuic train run.toml\n");
  add_train_options(line);
  return line;
}

/// The arguments of a rank: what the person gave, with --ranks turned into an override.
Arguments worker_arguments(const std::string& file, const std::vector<std::string>& overrides,
                           const boost::program_options::variables_map& values) {
  Arguments arguments{file, "--resume", get(values, "resume")};
  for (const std::string& o : overrides) {
    arguments.push_back("--set");
    arguments.push_back(o);
  }
  for (const char* flag : {"quiet", "verbose", "lines"}) {
    if (values.count(flag) != 0) {
      arguments.push_back(std::string("--") + flag);
    }
  }
  if (values.count("debug") != 0) {
    arguments.push_back("--debug");
    arguments.push_back(get(values, "debug"));
  }
  if (values.count("log-level") != 0) {
    arguments.push_back("--log-level");
    arguments.push_back(get(values, "log-level"));
  }
  return arguments;
}

void check_ranks_against(const core::RankIdentity& id,
                         const boost::program_options::variables_map& values,
                         const core::RunConfig& config, core::Log& log) {
  if (values.count("ranks") != 0 && values["ranks"].as<int>() != id.world) {
    throw Failure(ExitCode::Usage,
                  "--ranks " + std::to_string(values["ranks"].as<int>()) + ", but WORLD_SIZE is " +
                      std::to_string(id.world),
                  "leave --ranks out under a launcher");
  }
  if (id.rank == 0 && config.run.ranks != id.world && config.given.contains("run.ranks")) {
    log.info("run.ranks = " + std::to_string(config.run.ranks) +
             " is ignored: the launcher started " + std::to_string(id.world) + " ranks");
  }
}

void check_ranks_value(int ranks, const CommandLine& line) {
  if (ranks < 1) {
    throw line.usage_failure("--ranks: got " + std::to_string(ranks) + ", expected 1 or more");
  }
}

int start_ranks(const core::RunConfig& config, Arguments arguments, bool afresh, bool is_quiet) {
  const core::RunFolder folder = core::RunFolder::claim(config.run.output, afresh);
  if (!folder.moved_to().empty() && !is_quiet) {
    std::printf("the earlier run is now in %s\n", folder.moved_to().c_str());
  }
  if (!is_quiet) {
    std::printf("run folder: %s\n", folder.path().c_str());
  }
  std::fflush(stdout);
  core::LaunchRequest request;
  request.worker = worker_path();
  arguments.insert(arguments.begin(), "train");
  request.arguments = std::move(arguments);
  request.ranks = static_cast<int>(config.run.ranks);
  request.threads = config.run.threads > 0 ? static_cast<int>(config.run.threads)
                                           : std::max(1, core::usable_cores() / request.ranks);
  request.needs_store = request.ranks > 1 && config.run.rendezvous == "auto";
  request.lock_fd = folder.lock_fd();
  request.log_folder = folder.path() + "/log";
  const std::string metrics = folder.metrics();
  const auto bytes_of = [&] {
    std::error_code ec;
    const auto bytes = std::filesystem::file_size(metrics, ec);
    return ec ? 0 : bytes;
  };
  const auto before = bytes_of();
  const int code = core::launch(request);
  if (bytes_of() > before) {  // this attempt wrote, so the last end is its own
    core::MetricsFile::correct_end(metrics, code);
  }
  return code;
}

}  // namespace

int train(const Arguments& given) {
  CommandLine line = command_line();
  const auto values = line.parse(given);
  if (!values) {
    return 0;
  }
  const std::string file = get(*values, "file");
  if (file.empty()) {
    throw line.usage_failure("no FILE is given");
  }
  if (values->count("debug") != 0 && get(*values, "debug") != "numbers") {
    throw line.usage_failure("--debug: got \"" + get(*values, "debug") + "\", expected numbers");
  }
  if (get(*values, "resume").empty()) {
    throw line.usage_failure("--resume is empty, expected auto, none or a checkpoint's path");
  }
  core::Log log({0, 1, terminal_level(*values), "", has_color(STDERR_FILENO)});
  std::vector<std::string> overrides = get_all(*values, "set");
  const std::vector<core::ModelField> fields = core::model_fields();
  if (values->count("ranks") != 0) {
    check_ranks_value((*values)["ranks"].as<int>(), line);
  }
  core::Loaded loaded = core::load_config(file, overrides, fields);
  if (!loaded.ok()) {
    // Says these problems, and those of plugins and model with them.
    if (const int code = in_child([&] { check_run({file, overrides, 0}, log); }); code != 0) {
      return code;
    }
    throw core::configuration_failure(loaded.problems);
  }
  const auto id = core::rank_from_environment(loaded.config.run.rendezvous);
  if (id) {
    check_ranks_against(*id, *values, loaded.config, log);
    become_worker("train", worker_arguments(file, overrides, *values));
  }
  if (loaded.config.run.rendezvous == "env://") {
    throw Failure(ExitCode::Environment,
                  "run.rendezvous is \"env://\", and RANK and WORLD_SIZE are not set",
                  "start it with a launcher, or set run.rendezvous = \"auto\"");
  }
  if (values->count("ranks") != 0) {
    overrides.push_back("run.ranks=" + std::to_string((*values)["ranks"].as<int>()));
    loaded = core::load_config(file, overrides, fields);
    if (!loaded.ok()) {
      throw core::configuration_failure(loaded.problems);
    }
  }
  if (const int code = in_child([&] { check_run({file, overrides, 0}, log); }); code != 0) {
    return code;
  }
  return start_ranks(loaded.config, worker_arguments(file, overrides, *values),
                     get(*values, "resume") == "none",
                     terminal_level(*values) > core::LogLevel::Info);
}

}  // namespace ciuic::tools
