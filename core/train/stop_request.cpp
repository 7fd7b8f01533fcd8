// SPDX-License-Identifier: MIT
#include "core/train/stop_request.h"

#include <signal.h>
#include <unistd.h>

#include "core/plugin/trampoline/last_words.h"

namespace ciuic::core {
namespace {

std::atomic<bool> raised{false};
std::atomic<int> counted{0};
std::atomic<pid_t> counts_from{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "they are set in a signal handler");

void on_signal(int number, siginfo_t* info, void*) {
  raised = true;
  const pid_t launcher = counts_from.load();
  if ((launcher == 0 || info->si_pid == launcher) && ++counted > 1) {
    say_done(128 + number);
    _exit(128 + number);
  }
}

}  // namespace

std::atomic<bool>& StopRequest::flag() noexcept { return raised; }

void StopRequest::install(pid_t launcher) {
  counts_from = launcher;
  struct sigaction action {};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigset_t both;
  sigemptyset(&both);
  for (const int number : {SIGINT, SIGTERM}) {
    sigaction(number, &action, nullptr);
    sigaddset(&both, number);
  }
  sigprocmask(SIG_UNBLOCK, &both, nullptr);
}

}  // namespace ciuic::core
