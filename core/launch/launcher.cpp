// SPDX-License-Identifier: MIT
#include "core/launch/launcher.h"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <optional>
#include <random>
#include <signal.h>
#include <spawn.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "core/log/failure.h"

extern char** environ;

namespace ciuic::core {
namespace {

constexpr int kCannotLoad = 127;  // what the loader, like a shell, leaves with

using Clock = std::chrono::steady_clock;

/// After the first failure the others may still find out for themselves and write their last lines.
constexpr auto kGraceAfterFailure = std::chrono::seconds(3);
constexpr auto kGraceAfterSecondSignal = std::chrono::seconds(2);
/// Between the question what a rank is doing and its end by force.
constexpr auto kTimeForLastWords = std::chrono::milliseconds(300);

struct Rank {
  int number = 0;
  pid_t pid = -1;
  int report = -1;  // the read end: what the rank says about its failure
  bool is_running = false;
};

struct FirstFailure {
  int code = 0;
  std::string message;
};

std::string errno_text() { return std::strerror(errno); }

/// A socket that listens on a free loopback port. It is handed to rank 0 open, so no other process
/// can take the port between.
int listen_on_loopback(int& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw Failure(ExitCode::Environment, "cannot open a loopback port: " + errno_text());
  }
  port = ntohs(address.sin_port);
  return fd;
}

std::string random_id() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof(text), "%08x%08x", device(), device());
  return text;
}

std::string host_name() {
  char name[256] = "unknown";
  gethostname(name, sizeof(name) - 1);
  return name;
}

class Launcher {
 public:
  explicit Launcher(const LaunchRequest& request) : request_(request) {}
  ~Launcher() {
    for (Rank& rank : ranks_) {
      if (rank.is_running) {
        kill(rank.pid, SIGKILL);
        waitpid(rank.pid, nullptr, 0);
      }
      close(rank.report);
    }
    if (store_fd_ >= 0) {
      close(store_fd_);
    }
  }

  int run() {
    block_signals();
    if (request_.needs_store) {
      store_fd_ = listen_on_loopback(port_);
    }
    run_id_ = random_id();
    for (int i = 0; i < request_.ranks; ++i) {
      start(i);
    }
    while (running_ > 0) {
      wait_for_event();
      reap();
      enforce_deadline();
    }
    return finish();
  }

 private:
  void block_signals() {
    sigemptyset(&signals_);
    for (const int s : {SIGINT, SIGTERM, SIGCHLD}) {
      sigaddset(&signals_, s);
    }
    struct sigaction hangup {};
    if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
      sigaddset(&signals_,
                SIGHUP);  // a closed terminal asks for a stop, unless nohup said otherwise
    }
    sigprocmask(SIG_BLOCK, &signals_, &old_mask_);
  }

  std::vector<std::string> environment(int number) const {
    const std::string set[][2] = {
        {"RANK", std::to_string(number)},
        {"WORLD_SIZE", std::to_string(request_.ranks)},
        {"LOCAL_RANK", std::to_string(number)},
        {"LOCAL_WORLD_SIZE", std::to_string(request_.ranks)},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", std::to_string(port_)},
        {"OMP_NUM_THREADS", std::to_string(request_.threads)},
        {"KINETO_LOG_LEVEL",
         "5"},  // LibTorch looks for a GPU at load and complains when there is none
        {"TORCH_CPP_LOG_LEVEL",
         "FATAL"},  // and prints with a stack trace when a peer's store connection ends
    };
    std::vector<std::string> result;
    for (char** e = environ; *e != nullptr; ++e) {
      const std::string entry = *e;
      bool is_ours = false;
      for (const auto& [name, value] : set) {
        is_ours = is_ours || entry.rfind(name + "=", 0) == 0;
      }
      if (!is_ours) {
        result.push_back(entry);
      }
    }
    for (const auto& [name, value] : set) {
      result.push_back(name + "=" + value);
    }
    return result;
  }

  void start(int number) {
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
      throw Failure(ExitCode::Environment, "cannot make a pipe: " + errno_text());
    }
    std::vector<std::string> arguments{request_.worker};
    arguments.insert(arguments.end(), request_.arguments.begin(), request_.arguments.end());
    for (const std::string& a :
         {std::string("--run-id"), run_id_, std::string("--report-fd"), std::to_string(pipe_fds[1]),
          std::string("--launcher-pid"), std::to_string(getpid())}) {
      arguments.push_back(a);
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const auto inherit = [&actions](int fd) { posix_spawn_file_actions_adddup2(&actions, fd, fd); };
    inherit(pipe_fds[1]);
    if (number == 0 && store_fd_ >= 0) {
      inherit(store_fd_);
      arguments.push_back("--store-fd");
      arguments.push_back(std::to_string(store_fd_));
    }
    if (number == 0 && request_.lock_fd >= 0) {
      inherit(request_.lock_fd);
    }
    Rank rank;
    rank.number = number;
    rank.report = pipe_fds[0];
    const int error = spawn(arguments, environment(number), actions, rank.pid);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fds[1]);
    rank.is_running = error == 0;
    ranks_.push_back(rank);
    if (error != 0) {
      throw Failure(ExitCode::Environment,
                    "cannot start rank " + std::to_string(number) + ": " + std::strerror(error), "",
                    {{"file", request_.worker}});
    }
    ++running_;
  }

  int spawn(std::vector<std::string>& arguments, std::vector<std::string> environment,
            const posix_spawn_file_actions_t& actions, pid_t& pid) const {
    std::vector<char*> argv;
    for (std::string& a : arguments) {
      argv.push_back(a.data());
    }
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (std::string& e : environment) {
      envp.push_back(e.data());
    }
    envp.push_back(nullptr);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // A process group of its own: Ctrl-C on the terminal reaches this process alone, which passes
    // it on once.
    posix_spawnattr_setpgroup(&attributes, 0);
    // Stop requests wait until the rank is ready for them: LibTorch takes a while to load.
    sigset_t mask = old_mask_;
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    const int error =
        posix_spawn(&pid, request_.worker.c_str(), &actions, &attributes, argv.data(), envp.data());
    posix_spawnattr_destroy(&attributes);
    return error;
  }

  void wait_for_event() {
    const timespec tick{0, 100'000'000};
    const int signal = sigtimedwait(&signals_, nullptr, &tick);
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
      pass_on(signal == SIGHUP ? SIGTERM : signal);
    }
  }

  void pass_on(int signal) {
    ++stop_signals_;
    last_signal_ = signal;
    if (stop_signals_ == 1) {
      std::fprintf(stderr,
                   "stopping after this step, with a checkpoint; once more to stop at once\n");
    } else {
      limit(kGraceAfterSecondSignal);
    }
    for (const Rank& rank : ranks_) {
      if (rank.is_running) {
        kill(rank.pid, signal);
      }
    }
  }

  void limit(Clock::duration grace) {
    const auto until = Clock::now() + grace;
    deadline_ = deadline_ ? std::min(*deadline_, until) : until;
  }

  void enforce_deadline() {
    if (!deadline_ || Clock::now() < *deadline_) {
      return;
    }
    const bool is_asked = std::exchange(is_asked_for_words_, true);
    if (is_asked && Clock::now() < *deadline_ + kTimeForLastWords) {
      return;
    }
    for (const Rank& rank : ranks_) {
      if (rank.is_running) {
        kill(rank.pid, is_asked ? SIGKILL : SIGQUIT);
      }
    }
  }

  void reap() {
    for (Rank& rank : ranks_) {
      int status = 0;
      if (!rank.is_running || waitpid(rank.pid, &status, WNOHANG) != rank.pid) {
        continue;
      }
      rank.is_running = false;
      --running_;
      const bool is_signal = WIFSIGNALED(status);
      const int code = is_signal ? static_cast<int>(ExitCode::Communication) : WEXITSTATUS(status);
      if (code != 0) {
        note_failure(rank, status, code, is_signal);
      }
    }
  }

  void note_failure(Rank& rank, int status, int code, bool is_signal) {
    // A lost peer is what the others see of a failure. Who says more, or was killed, is nearer to the cause.
    const bool ended_by_us = deadline_ && Clock::now() >= *deadline_;
    if (ended_by_us && is_signal) {
      words_.push_back("rank " + std::to_string(rank.number) + ": " + read_report(rank.report));
    }
    const bool says_more = is_signal
                               ? !is_first_by_signal_
                               : code != static_cast<int>(ExitCode::Communication) &&
                                     code != static_cast<int>(ExitCode::Stopped) && code < 128;
    const bool explains = first_.code == static_cast<int>(ExitCode::Communication) &&
                          !is_first_by_signal_ && says_more && !ended_by_us;
    if (first_.code != 0 && !explains) {
      return;
    }
    is_first_by_signal_ = is_signal;
    first_.code = code;
    const std::string report = read_report(rank.report);
    first_.message = is_signal ? death_message(rank, WTERMSIG(status), report) : report;
    if (code == kCannotLoad && report.empty()) {
      first_.code = static_cast<int>(ExitCode::Environment);
      first_.message = format(Failure(
          ExitCode::Environment,
          "rank " + std::to_string(rank.number) +
              " cannot start: a library that it needs is not there",
          "see the loader's line above; LibTorch must be where it was when ciuic was built"));
    } else if (first_.message.empty() && code != static_cast<int>(ExitCode::Stopped) &&
               code < 128) {
      first_.message = format(Failure(
          static_cast<ExitCode>(code),
          "rank " + std::to_string(rank.number) + " ended with code " + std::to_string(code),
          "see " + request_.log_folder));
    }
    if (code != static_cast<int>(ExitCode::Stopped)) {
      limit(kGraceAfterFailure);
    }
  }

  /// `report`: what a rank that crashed has said of plugin, function and library.
  std::string death_message(const Rank& rank, int signal, std::string_view report) const {
    constexpr std::string_view kPrefix = "ciuic: error: ";
    const std::string end = "rank " + std::to_string(rank.number) + " was ended by signal " +
                            std::to_string(signal) + " (" + strsignal(signal) + ")";
    if (report.substr(0, kPrefix.size()) == kPrefix) {
      return std::string(kPrefix) + end + ": " + std::string(report.substr(kPrefix.size())) +
             "; see " + request_.log_folder;
    }
    Failure failure(ExitCode::Communication, end,
                    signal == SIGKILL
                        ? "was it killed by hand, or by the kernel for lack of memory? start the "
                          "same command again to go on from the last checkpoint"
                        : "see " + request_.log_folder);
    failure.with("rank", std::to_string(rank.number)).with("host", host_name());
    failure.with("pid", std::to_string(rank.pid));
    return format(failure);
  }

  static std::string read_report(int fd) {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }

  int finish() const {
    if (stop_signals_ >= 2 && (first_.code >= 128 || is_first_by_signal_)) {
      return 128 + last_signal_;
    }
    for (const std::string& words : words_) {
      std::fprintf(stderr, "%s\n", words.c_str());
    }
    if (!first_.message.empty()) {
      std::fprintf(stderr, "%s\n", first_.message.c_str());
    }
    return first_.code;
  }

  const LaunchRequest& request_;
  std::vector<Rank> ranks_;
  int running_ = 0;
  int store_fd_ = -1;
  int port_ = 0;
  std::string run_id_;
  sigset_t signals_{};
  sigset_t old_mask_{};
  int stop_signals_ = 0;
  int last_signal_ = 0;
  std::optional<Clock::time_point> deadline_;
  FirstFailure first_;
  bool is_first_by_signal_ = false;
  bool is_asked_for_words_ = false;
  std::vector<std::string> words_;  // of ranks that had to be ended
};

}  // namespace

int launch(const LaunchRequest& request) { return Launcher(request).run(); }

}  // namespace ciuic::core
