// SPDX-License-Identifier: MIT
#include "tools/probe/supervisor.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ciuic::tools {
namespace {

constexpr int kOurFault = 70;

pid_t parent_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = text.rfind(')');  // a name may hold anything
  return name_end == std::string::npos || name_end + 4 > text.size()
             ? -1
             : std::atoi(text.c_str() + name_end + 4);
}

void kill_children() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), &closedir);
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (name[0] >= '1' && name[0] <= '9' && parent_of(name) == getpid()) {
      kill(std::atoi(name.c_str()), SIGKILL);
    }
  }
}

/// The children of one that is killed become ours: until there are none.
void end_all(pid_t worker, int& worker_status) {
  for (bool are_asked = false;; are_asked = true) {
    if (are_asked) {
      kill_children();
    }
    int status = 0;
    const pid_t pid = waitpid(-1, &status, are_asked ? 0 : WNOHANG);  // mostly there are none left
    if (pid < 0 && errno != EINTR) {
      return;
    }
    worker_status = pid == worker ? status : worker_status;
  }
}

/// Until the child ends or ciuic asks. False: asked.
bool wait_for(pid_t worker, const sigset_t& signals, int& status) {
  for (;;) {
    const int signal = sigwaitinfo(&signals, nullptr);
    if (signal == SIGTERM) {
      return false;
    }
    int other = 0;
    for (pid_t pid; (pid = waitpid(-1, &other, WNOHANG)) > 0;) {
      if (pid == worker) {
        status = other;
        return true;
      }
    }
  }
}

[[noreturn]] void end_like(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(WTERMSIG(status), SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    raise(WTERMSIG(status));
  }
  _exit(WEXITSTATUS(status));
}

}  // namespace

void supervise(int (*work)()) {
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, &before);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const pid_t me = getpid();
  const pid_t worker = fork();
  if (worker == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != me) {
      _exit(kOurFault);
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    _exit(work());
  }
  // What ciuic reads ends with the child.
  for (const int fd : {0, 2, 3}) {
    close(fd);
  }
  int status = kOurFault << 8;
  if (worker > 0) {
    wait_for(worker, signals, status);
    end_all(worker, status);
  }
  end_like(status);
}

}  // namespace ciuic::tools
