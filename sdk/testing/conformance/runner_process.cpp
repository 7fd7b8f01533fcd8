// SPDX-License-Identifier: MIT
#include "runner_process.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner_stack.hpp"

namespace ciuic::testing {
namespace {

constexpr off_t kShownOutput = 4000;
constexpr int kNoPipe = 113;  // exit code of a child whose pipe was closed under it

/// A file descriptor, closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) {
      close(fd_);
    }
    fd_ = -1;
  }

 private:
  int fd_;
};

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

[[noreturn]] void be_the_child(const std::function<Message()>& body, int result, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // an interrupted runner leaves nothing behind
  setpgid(0, 0);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  close(output);
  watch_stack();
  const Message message = body();
  _exit(write_message(result, message) ? 0 : kNoPipe);
}

std::string tail(int output) {
  const off_t size = lseek(output, 0, SEEK_END);
  const off_t begin = size > kShownOutput ? size - kShownOutput : 0;
  std::string text(static_cast<size_t>(std::max<off_t>(size - begin, 0)), '\0');
  const ssize_t got = pread(output, text.data(), text.size(), begin);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

/// A child that has reported exits at once; one that has not is given time for its last words.
bool wait_for_exit(pid_t child, int& status, int64_t deadline_ns) {
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (now_ns() > deadline_ns) {
      return false;
    }
    usleep(1000);
  }
  return true;
}

}  // namespace

Ended run_isolated(const std::function<Message()>& body, double limit_seconds) {
  int ends[2];
  if (pipe(ends) != 0) {
    fail("pipe");
  }
  Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const Descriptor output(memfd_create("output", MFD_CLOEXEC));
  if (output.get() < 0) {
    fail("memfd_create");
  }
  prepare_stack_watch();
  const int64_t begin = now_ns();
  const int64_t deadline = begin + static_cast<int64_t>(limit_seconds * 1e9);
  const pid_t child = fork();
  if (child < 0) {
    fail("fork");
  }
  if (child == 0) {
    read_end.reset();
    be_the_child(body, write_end.get(), output.get());
  }
  setpgid(child, child);
  write_end.reset();

  Ended out;
  Message message;
  const Arrival arrival = read_message(read_end.get(), deadline, message);
  out.garbled = arrival == Arrival::Garbled;
  if (arrival == Arrival::Complete) {
    out.message = std::move(message);
  }
  int status = 0;
  if (arrival == Arrival::Nothing && now_ns() >= deadline) {
    out.timed_out = true;
    ask_for_stack(child);
  }
  if (out.timed_out || !wait_for_exit(child, status, now_ns() + 2'000'000'000)) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  kill(-child, SIGKILL);  // whatever the test itself started
  out.seconds = static_cast<double>(now_ns() - begin) / 1e9;
  if (!out.message) {
    out.signal = WIFSIGNALED(status) && !out.timed_out ? WTERMSIG(status) : 0;
    out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    out.where = last_call();
  }
  out.output = tail(output.get());
  return out;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

std::string describe_end(const Ended& ended, double limit_seconds) {
  const std::string in = ended.where.empty() ? "" : " in " + ended.where;
  if (ended.timed_out) {
    return "hangs" + in + ": not done after " + std::to_string(static_cast<int>(limit_seconds)) +
           " s";
  }
  if (ended.garbled) {
    return kGarbled;
  }
  if (ended.signal != 0) {
    return "crashed" + in + ": " + signal_name(ended.signal);
  }
  if (ended.exit_code == kNoPipe) {
    return "closed a file descriptor that is not its own: one of the kit's pipes";
  }
  return "ended the process" + in + " with exit code " + std::to_string(ended.exit_code) +
         "; a library never does that";
}

}  // namespace ciuic::testing
