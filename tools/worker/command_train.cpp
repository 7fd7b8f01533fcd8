// SPDX-License-Identifier: MIT
//
// One rank of `ciuic train`.
#include <fcntl.h>
#include <optional>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/bench/step_bench.h"
#include "core/plugin/trampoline/crash_handler.h"
#include "core/plugin/trampoline/crumb_board.h"
#include "core/plugin/trampoline/last_words.h"
#include "core/train/run_rank.h"
#include "core/train/stop_request.h"
#include "tools/worker/commands.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;

int report_fd = -1;

/// A rank never outlives the launcher that started it, however that ends.
void die_with(pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) {
    throw core::Failure(core::ExitCode::Communication, "the launcher is gone");
  }
}

}  // namespace

void show_failure(const std::string& text) {
  // A pipe holds 64 KiB and is read when this process has ended: more would wait for ever.
  constexpr size_t kMost = 60'000;
  std::string line = text + (report_fd < 0 ? "\n" : "");
  if (report_fd >= 0 && line.size() > kMost) {
    const size_t last = line.rfind('\n') + 1;
    line = line.substr(0, kMost / 2) + "\n...\n" + line.substr(last, kMost / 2);
  }
  if (write(report_fd < 0 ? STDERR_FILENO : report_fd, line.data(), line.size()) < 0) {
    _exit(static_cast<int>(core::ExitCode::Internal));  // nobody is left to tell
  }
}

int train_rank(const Arguments& arguments) {
  CommandLine line("train", "ciuic train FILE", "One rank of a run.", "");
  add_train_options(line);
  line.hidden().add_options()("run-id", po::value<std::string>())("report-fd", po::value<int>())(
      "launcher-pid", po::value<int>())("store-fd", po::value<int>())("crumb-fd", po::value<int>())(
      "launch-times", po::value<std::string>())("bench-file", po::value<std::string>())(
      "bench-warmup", po::value<int>())("bench-steps", po::value<int>());
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  if (values->count("report-fd") != 0) {
    report_fd = (*values)["report-fd"].as<int>();
    // Its end is this process's end, whatever a plugin starts.
    fcntl(report_fd, F_SETFD, FD_CLOEXEC);
    core::set_last_words(0, report_fd);
  }
  if (values->count("crumb-fd") != 0) {
    const int fd = (*values)["crumb-fd"].as<int>();
    core::CrumbBoard::use(fd);
    close(fd);
  }
  const pid_t launcher =
      values->count("launcher-pid") != 0 ? (*values)["launcher-pid"].as<int>() : 0;
  core::StopRequest::install(launcher);
  if (launcher != 0) {
    die_with(launcher);
    core::install_end_handler();
  }
  core::RankOptions options;
  options.request.file = get(*values, "file");
  options.request.overrides = get_all(*values, "set");
  options.resume = get(*values, "resume");
  options.is_launched = launcher != 0;
  options.run_id = get(*values, "run-id");
  options.store_fd = values->count("store-fd") != 0 ? (*values)["store-fd"].as<int>() : -1;
  options.is_quiet = terminal_level(*values) > core::LogLevel::Info;
  options.watches_numbers = get(*values, "debug") == "numbers";
  options.steps_on_lines = values->count("lines") != 0;
  options.identity = core::rank_from_environment("tcp://").value_or(core::RankIdentity{});
  core::set_last_words(options.identity.rank, report_fd);

  const core::LogLevel level = terminal_level(*values);
  const bool is_first = options.identity.rank == 0;
  core::Log log({options.identity.rank, options.identity.world,
                 is_first ? level : std::max(level, core::LogLevel::Warn), "",
                 has_color(STDERR_FILENO)});
  core::StartupClock startup(core::LaunchTimes::parse(get(*values, "launch-times")));
  startup.lap("libraries");
  options.startup = &startup;
  std::optional<core::StepBench> bench;
  if (values->count("bench-file") != 0) {
    bench.emplace(core::StepBenchRequest{static_cast<uint64_t>((*values)["bench-warmup"].as<int>()),
                                         static_cast<uint64_t>((*values)["bench-steps"].as<int>()),
                                         get(*values, "bench-file")});
    options.observer = &*bench;
  }
  return static_cast<int>(core::run_rank(options, log));
}

}  // namespace ciuic::tools
