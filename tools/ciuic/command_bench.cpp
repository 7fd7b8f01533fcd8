// SPDX-License-Identifier: MIT
//
// ciuic bench step: makes a few steps of a run as `train` would, in a folder that goes away, and
// shows where their time and memory went.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/bench/step_report.h"
#include "core/launch/environment.h"
#include "core/launch/launcher.h"
#include "core/train/run_folder.h"
#include "core/train/run_plan.h"
#include "tools/ciuic/check_run.h"
#include "tools/ciuic/commands.h"
#include "tools/ciuic/worker_process.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;
using core::ExitCode;
using core::Failure;

/// A run's folder for as long as the bench takes. One whose logs a message names stays.
class PassingFolder {
 public:
  PassingFolder() {
    const char* base = std::getenv("TMPDIR");
    std::string pattern =
        std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/ciuic-bench-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      throw Failure(ExitCode::Storage, "cannot make a temporary folder", "set TMPDIR",
                    {{"folder", pattern}});
    }
    path_ = pattern;
  }
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;
  ~PassingFolder() {
    if (!is_kept_) {
      std::error_code ec;
      fs::remove_all(path_, ec);
    }
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  void keep() { is_kept_ = true; }

 private:
  std::string path_;
  bool is_kept_ = false;
};

CommandLine command_line() {
  CommandLine line(
      "bench", "ciuic bench step FILE [--steps N] [--warmup N] [--format text|json]",
      "Makes steps of the run that FILE describes, on its ranks, and shows where they spend their\n"
      "time: phases, parts of the model, rates against that of matrix products in the same "
      "process,\n"
      "allocations, memory and start-up. Nothing is saved; validation and checkpoints are off.",
      "  ciuic bench step configs/quickstart.toml\n"
      "  ciuic bench step run.toml --steps 30 --set precision.plugin=bf16 --format json\n");
  line.options().add_options()("steps", po::value<int>()->default_value(10)->value_name("N"),
                               "Timed steps")("warmup",
                                              po::value<int>()->default_value(3)->value_name("N"),
                                              "Steps before them, 2 or more")(
      "format", po::value<std::string>()->default_value("text")->value_name("FORMAT"),
      "text or json")("set",
                      po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
                      "Overrides one key of the file; may be given often")(
      "ranks", po::value<int>()->value_name("N"), "Processes to start (run.ranks)")(
      "pin", "Gives each rank cores of its own, as many as run.threads");
  add_log_options(line);
  line.positional("words", 2);
  return line;
}

int at_least(const CommandLine& line, const po::variables_map& values, const char* option,
             int least) {
  const int got = values[option].as<int>();
  if (got < least) {
    throw line.usage_failure("--" + std::string(option) + ": got " + std::to_string(got) +
                             ", expected " + std::to_string(least) + " or more");
  }
  return got;
}

core::RunConfig checked(const std::string& file, const std::vector<std::string>& overrides) {
  core::Loaded loaded = core::load_config(file, overrides, core::model_fields());
  if (!loaded.ok()) {
    throw core::configuration_failure(loaded.problems);
  }
  return loaded.config;
}

/// The file's overrides and the bench's own.
std::vector<std::string> overrides_of(const std::string& file, const po::variables_map& values,
                                      const std::string& folder, int steps) {
  std::vector<std::string> overrides = get_all(values, "set");
  if (values.count("ranks") != 0) {
    overrides.push_back("run.ranks=" + std::to_string(values["ranks"].as<int>()));
  }
  for (const std::string& own : {"run.output=" + folder, std::string("validation.every=never"),
                                 std::string("checkpoint.every=never")}) {
    overrides.push_back(own);
  }
  // A shorter run would end too early; a longer one keeps its schedules.
  if (const auto given = checked(file, overrides).run.steps; given && *given < steps) {
    overrides.push_back("run.steps=" + std::to_string(steps));
  }
  return overrides;
}

core::LaunchRequest request_for(const std::string& file, const std::vector<std::string>& overrides,
                                const core::RunConfig& config, const core::RunFolder& folder,
                                bool has_own_cores) {
  core::LaunchRequest request;
  request.worker = worker_path();
  request.arguments = {"train", file, "--quiet", "--resume", "none"};
  for (const std::string& o : overrides) {
    request.arguments.push_back("--set");
    request.arguments.push_back(o);
  }
  request.ranks = static_cast<int>(config.run.ranks);
  request.threads = config.run.threads > 0 ? static_cast<int>(config.run.threads)
                                           : std::max(1, core::usable_cores() / request.ranks);
  request.has_own_cores = has_own_cores;
  request.needs_store = request.ranks > 1 && config.run.rendezvous == "auto";
  request.lock_fd = folder.lock_fd();
  request.log_folder = folder.path() + "/log";
  request.stop_notice = "stopping after this step; nothing was measured";
  request.after_stop = request.after_kill = "nothing was measured";
  return request;
}

void show(const std::string& file, bool is_json) {
  std::ifstream stream(file);
  const auto found = nlohmann::ordered_json::parse(stream);
  const std::string text = is_json ? found.dump(2) + "\n" : core::step_report(found);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int bench_step(const CommandLine& line, const std::string& file, const po::variables_map& values) {
  const std::string format = get(values, "format");
  if (format != "text" && format != "json") {
    throw line.usage_failure("--format: got \"" + format + "\", expected text or json");
  }
  const int steps = at_least(line, values, "steps", 1);
  // In the second step memory is taken for good: from the third on it shows what each step takes.
  const int warmup = at_least(line, values, "warmup", 2);
  PassingFolder passing;
  const std::string& folder = passing.path();
  const auto overrides = overrides_of(file, values, folder, warmup + steps);
  const core::RunConfig config = checked(file, overrides);
  if (core::rank_from_environment(config.run.rendezvous)) {
    throw Failure(ExitCode::Usage, "RANK and WORLD_SIZE are set, and bench starts its own ranks",
                  "start it without a launcher, with --ranks N");
  }
  core::Log log({0, 1, terminal_level(values), "", has_color(STDERR_FILENO)});
  if (const int code = in_child([&] {
        core::PlanRequest request{file, overrides, 0};
        check_run(request, log);
      });
      code != 0) {
    return code;
  }
  const core::RunFolder claimed = core::RunFolder::claim(folder, /*afresh=*/false);
  core::LaunchRequest request =
      request_for(file, overrides, config, claimed, values.count("pin") != 0);
  const std::string found = folder + "/bench_step.json";
  for (const std::string& argument :
       {std::string("--bench-file"), found, std::string("--bench-warmup"), std::to_string(warmup),
        std::string("--bench-steps"), std::to_string(steps)}) {
    request.arguments.push_back(argument);
  }
  const int code = core::launch(request);
  if (code != 0) {
    const bool is_stopped = code == static_cast<int>(ExitCode::Stopped) || code > 128;
    if (!is_stopped) {
      passing.keep();
      log.info("what the ranks said is in " + request.log_folder + "; remove " + folder +
               " when you have read it");
    }
    return code;
  }
  show(found, format == "json");
  return 0;
}

}  // namespace

int bench(const Arguments& given) {
  CommandLine line = command_line();
  const auto values = line.parse(given);
  if (!values) {
    return 0;
  }
  const std::vector<std::string> words = get_all(*values, "words");
  if (words.empty() || words[0] != "step") {
    throw line.usage_failure(words.empty() ? "nothing to measure is given, expected step"
                                           : "got \"" + words[0] + "\", expected step");
  }
  if (words.size() < 2) {
    throw line.usage_failure("no FILE is given");
  }
  return bench_step(line, words[1], *values);
}

}  // namespace ciuic::tools
