// SPDX-License-Identifier: MIT
#include "core/train/stop_request.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

/// Runs `body` in a child; its exit code.
template <typename Body>
int in_child(const Body& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(body());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(StopRequest, TheFirstSignalAsks) {
  EXPECT_EQ(in_child([] {
              StopRequest::install(0);
              raise(SIGTERM);
              return StopRequest::is_raised() ? 42 : 0;
            }),
            42);
}

TEST(StopRequest, TheSecondEndsTheProcess) {
  for (const auto& [signal, code] : {std::pair{SIGTERM, 143}, std::pair{SIGINT, 130}}) {
    EXPECT_EQ(in_child([s = signal] {
                StopRequest::install(0);
                raise(SIGTERM);
                raise(s);
                return 0;
              }),
              code);
  }
}

TEST(StopRequest, SignalsThatWaitedForInstallCount) {
  EXPECT_EQ(in_child([] {
              sigset_t mask;
              sigemptyset(&mask);
              sigaddset(&mask, SIGTERM);
              sigprocmask(SIG_BLOCK, &mask, nullptr);
              raise(SIGTERM);
              StopRequest::install(0);
              return StopRequest::is_raised() ? 42 : 0;
            }),
            42);
}

TEST(StopRequest, OnlyTheLaunchersSecondSignalEndsARank) {
  EXPECT_EQ(in_child([] {
              StopRequest::install(getppid());
              raise(SIGTERM);  // a scheduler that signals every process
              raise(SIGTERM);
              return StopRequest::is_raised() ? 42 : 0;
            }),
            42);
  EXPECT_EQ(in_child([] {
              StopRequest::install(getpid());  // stands for the launcher's pid
              raise(SIGTERM);
              raise(SIGTERM);
              return 0;
            }),
            143);
}

}  // namespace
}  // namespace ciuic::core
