// SPDX-License-Identifier: MIT
#include "core/plugin/probe_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log/failure.h"
#include "core/plugin/probe_mark.h"

extern char** environ;

namespace ciuic::core {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxAnswers = size_t{16} << 20;
constexpr size_t kMaxPrinted = 4096;
constexpr auto kTimeToCleanUp = std::chrono::seconds(2);
constexpr int kLongestPollMs = 100;  // a stop is seen that soon
constexpr int kAnswerFd = 3;         // as in tools/probe/answer.h

[[noreturn]] void fail(const std::string& what, int error) {
  throw Failure(ExitCode::Environment,
                "ciuic-probe cannot be started: " + what + ": " + std::strerror(error));
}

struct Pipe {
  OpenFile read, write;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      fail("pipe", errno);
    }
    read = OpenFile(ends[0]);
    write = OpenFile(ends[1]);
  }
};

void do_not_block(const OpenFile& file) {
  fcntl(file.fd(), F_SETFL, fcntl(file.fd(), F_GETFL) | O_NONBLOCK);
}

/// The actions and attributes of one posix_spawn.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

ProbeProcess::ProbeProcess(const std::string& executable, const std::string& request)
    : request_(request) {
  Pipe in;
  Pipe out;
  Pipe errors;
  start(executable, in.read.fd(), out.write.fd(), errors.write.fd());
  input_ = std::move(in.write);
  answers_ = std::move(out.read);
  errors_ = std::move(errors.read);
  for (const OpenFile* file : {&input_, &answers_, &errors_}) {
    do_not_block(*file);
  }
}

void ProbeProcess::start(const std::string& executable, int in, int out, int errors) {
  SpawnPlan plan;
  // First out of the way of 0 to 3, then into place: dup2 onto itself would keep close-on-exec.
  const int free = std::max({in, out, errors, kAnswerFd}) + 1;
  posix_spawn_file_actions_adddup2(&plan.actions, in, free);
  posix_spawn_file_actions_adddup2(&plan.actions, errors, free + 1);
  posix_spawn_file_actions_adddup2(&plan.actions, out, free + 2);
  posix_spawn_file_actions_addopen(&plan.actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&plan.actions, free, 0);
  posix_spawn_file_actions_adddup2(&plan.actions, free + 1, 2);
  posix_spawn_file_actions_adddup2(&plan.actions, free + 2, kAnswerFd);
  posix_spawn_file_actions_addclosefrom_np(&plan.actions, kAnswerFd + 1);
  std::string name = executable;
  std::array<char*, 2> argv{name.data(), nullptr};
  const int error =
      posix_spawn(&pid_, executable.c_str(), &plan.actions, &plan.attributes, argv.data(), environ);
  if (error != 0) {
    pid_ = -1;
    fail(executable, error);
  }
}

ProbeProcess::~ProbeProcess() { kill_group(); }

bool ProbeProcess::has_ended() const noexcept {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

void ProbeProcess::kill_group() noexcept {
  if (pid_ < 0) {
    return;
  }
  // The leader runs no plugin's code and ends all that was started (tools/probe/supervisor.h); the
  // group by force if a plugin stopped it. It is not reaped yet, so the id is its own.
  kill(pid_, SIGTERM);
  const auto end = Clock::now() + kTimeToCleanUp;
  while (!has_ended() && Clock::now() < end) {
    usleep(500);
  }
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void ProbeProcess::feed() {
  // A child that is gone must not end us: SIGPIPE is held back for this one write.
  sigset_t pipe_signal;
  sigset_t before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t n = write(input_.fd(), request_.data() + fed_, request_.size() - fed_);
  const bool is_broken = n < 0 && errno == EPIPE;
  if (is_broken && sigismember(&before, SIGPIPE) == 0) {
    const timespec now{};
    sigtimedwait(&pipe_signal, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  fed_ += n > 0 ? static_cast<size_t>(n) : 0;
  if (is_broken || fed_ == request_.size()) {
    input_.close();
  }
}

bool ProbeProcess::take(const OpenFile& from, std::string& into, size_t limit) {
  std::array<char, 65536> buffer;
  const ssize_t n = read(from.fd(), buffer.data(), buffer.size());
  if (n > 0) {
    into.append(buffer.data(), static_cast<size_t>(n));
    if (into.size() > limit) {
      into.erase(0, into.size() - limit);
    }
  }
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

ProbeProcess::Outcome ProbeProcess::next_line(std::chrono::milliseconds patience,
                                              std::string& line) {
  const auto end = Clock::now() + patience;
  while (true) {
    if (const size_t newline = unread_.find('\n'); newline != std::string::npos) {
      line = unread_.substr(0, newline);
      unread_.erase(0, newline + 1);
      return Outcome::Line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      return Outcome::Silent;
    }
    if (InterruptsHeldBack::is_one_pending()) {
      return Outcome::Interrupted;
    }
    std::array<pollfd, 3> watched{
        {{answers_.fd(), POLLIN, 0}, {errors_.fd(), POLLIN, 0}, {input_.fd(), POLLOUT, 0}}};
    if (poll(watched.data(), watched.size(),
             std::min(static_cast<int>(left.count()) + 1, kLongestPollMs)) < 0 &&
        errno != EINTR) {
      return Outcome::Ended;
    }
    if (watched[2].revents != 0) {
      feed();
    }
    if (watched[1].revents != 0 && !take(errors_, printed_, kMaxPrinted)) {
      errors_.close();
    }
    if (watched[0].revents != 0) {
      const size_t before = unread_.size();
      if (!take(answers_, unread_, kMaxAnswers + 1)) {
        return Outcome::Ended;
      }
      total_ += unread_.size() - before;
      if (total_ > kMaxAnswers) {
        return Outcome::TooMuch;
      }
    }
  }
}

std::string ProbeProcess::how_it_ended() {
  // Its answers ended, and so does it: at once, or with a little help.
  const auto end = Clock::now() + std::chrono::seconds(1);
  while (pid_ > 0 && !has_ended() && Clock::now() < end) {
    usleep(1000);
  }
  while (errors_ && take(errors_, printed_, kMaxPrinted) && errno != EAGAIN) {
    errno = 0;
    pollfd more{errors_.fd(), POLLIN, 0};
    if (poll(&more, 1, 0) <= 0) {
      break;
    }
  }
  kill_group();
  std::string text;
  if (WIFSIGNALED(status_)) {
    const int number = WTERMSIG(status_);
    text = "signal " + std::to_string(number) + " (" + strsignal(number) + ")";
  } else {
    text = "exit code " + std::to_string(WEXITSTATUS(status_));
  }
  std::string last = printed_.substr(0, printed_.find_last_not_of(" \n\r\t") + 1);
  last = last.substr(last.find_last_of('\n') + 1);
  for (char& c : last) {
    c = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return last.empty() ? text : text + ", after printing: " + last.substr(0, 300);
}

}  // namespace ciuic::core
