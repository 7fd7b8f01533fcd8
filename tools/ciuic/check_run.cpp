// SPDX-License-Identifier: MIT
#include "tools/ciuic/check_run.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/launch/device_check.h"
#include "core/plugin/decorator/record_paths.h"
#include "core/train/planned_course.h"
#include "core/train/run_data.h"
#include "core/train/run_schedules.h"
#include "tools/ciuic/arguments.h"
#include "tools/ciuic/worker_process.h"

namespace ciuic::tools {
namespace {

using core::ExitCode;
using core::Failure;

/// Before a rank writes over a file, or two records over each other.
void check_records(const core::RunPlan& plan) {
  std::vector<core::DecoratedPlugin> plugins;
  const auto add = [&](const core::ChosenPlugin& chosen) {
    plugins.push_back(
        {chosen.found.descriptor->kind, chosen.found.descriptor->name, chosen.decorators});
  };
  for (const auto& [kind, chosen] : plan.plugins) {
    add(chosen);
  }
  for (const core::ChosenPlugin& chosen : plan.profilers) {
    add(chosen);
  }
  const core::RunSection& run = plan.config.run;
  const auto problems = core::record_problems(plugins, run.output, static_cast<int>(run.ranks));
  if (!problems.empty()) {
    throw core::configuration_failure(problems);
  }
}

/// Phases in tokens among steps, and a growing batch's points: known once the scheduler has planned.
void check_schedules(const core::RunPlan& plan, const core::PlanRequest& request, core::Log& log) {
  if (core::has_growing_batch(plan)) {
    const int world = request.world > 0 ? request.world : static_cast<int>(plan.config.run.ranks);
    (void)core::RunSchedules(plan.config, core::planned_course(plan, world, log));
  }
}

bool has_reader(int fd) {
  pollfd end{fd, POLLOUT, 0};
  return poll(&end, 1, 0) < 1 || (end.revents & POLLERR) == 0;
}

}  // namespace

core::RunPlan check_run(const core::PlanRequest& request, core::Log& log) {
  core::RunPlan plan = core::make_plan(request, log);
  check_records(plan);
  core::check_device(plan.config.run.device);
  core::open_data(plan, log);
  check_schedules(plan, request, log);
  return plan;
}

int in_child(const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    throw Failure(ExitCode::Environment,
                  std::string("cannot start a process: ") + std::strerror(errno));
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    quieten_libtorch();
    const int code = run_command(
        [&] {
          work();
          return 0;
        },
        [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); });
    _exit(code);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE && !has_reader(STDOUT_FILENO)) {
    return 128 + SIGPIPE;  // as with `| head`
  }
  if (WIFSIGNALED(status)) {
    throw Failure(ExitCode::Plugin,
                  std::string("a plugin crashed while it read the model: signal ") +
                      strsignal(WTERMSIG(status)),
                  "see ciuic plugin list");
  }
  return WEXITSTATUS(status);
}

}  // namespace ciuic::tools
