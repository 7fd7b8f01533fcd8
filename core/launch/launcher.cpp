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

#include "core/config/joined.h"
#include "core/launch/rank_cores.h"
#include "core/launch/startup_clock.h"
#include "core/log/failure.h"
#include "core/plugin/trampoline/crumb_board.h"
#include "core/plugin/trampoline/last_words.h"

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
  CrumbBoard board;
  bool is_running = false;
};

/// What a rank that is gone has said.
struct Report {
  std::string text;
  bool is_done = false;  // it ended on its own account
};

/// How a rank ended.
struct RankEnd {
  int status = 0;
  int code = 0;
  Report report;

  [[nodiscard]] bool is_signal() const { return WIFSIGNALED(status); }
  /// It did not come to its end: a signal, or a plugin that called exit().
  [[nodiscard]] bool is_cut() const { return is_signal() || !report.is_done; }
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
    Rank rank;
    rank.number = number;
    int pipe_fds[2];
    // What a rank that is gone has said is in the pipe: reading waits for nobody who inherited it.
    if (pipe2(pipe_fds, O_CLOEXEC) != 0 || fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK) != 0) {
      throw Failure(ExitCode::Environment, "cannot make a pipe: " + errno_text());
    }
    rank.report = pipe_fds[0];
    std::vector<std::string> arguments{request_.worker};
    arguments.insert(arguments.end(), request_.arguments.begin(), request_.arguments.end());
    for (const std::string& a :
         {std::string("--run-id"), run_id_, std::string("--report-fd"), std::to_string(pipe_fds[1]),
          std::string("--crumb-fd"), std::to_string(rank.board.fd()), std::string("--launcher-pid"),
          std::to_string(getpid()), std::string("--launch-times"),
          LaunchTimes{process_start_ns(), host_clock_ns()}.text()}) {
      arguments.push_back(a);
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const auto inherit = [&actions](int fd) { posix_spawn_file_actions_adddup2(&actions, fd, fd); };
    inherit(pipe_fds[1]);
    inherit(rank.board.fd());
    if (number == 0 && store_fd_ >= 0) {
      inherit(store_fd_);
      arguments.push_back("--store-fd");
      arguments.push_back(std::to_string(store_fd_));
    }
    if (number == 0 && request_.lock_fd >= 0) {
      inherit(request_.lock_fd);
    }
    std::optional<RankCores> cores;
    if (request_.has_own_cores) {
      cores.emplace(number, request_.threads);
    }
    const int error = spawn(arguments, environment(number), actions, rank.pid);
    cores.reset();
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fds[1]);
    rank.is_running = error == 0;
    ranks_.push_back(std::move(rank));
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
      std::fprintf(stderr, "%s; once more to stop at once\n", request_.stop_notice.c_str());
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
      RankEnd end{status, 0, read_report(rank.report)};
      end.code = end.is_signal() ? static_cast<int>(ExitCode::Communication) : WEXITSTATUS(status);
      end.report.is_done = end.report.is_done && !end.is_signal();
      if (end.code != 0 || end.is_cut()) {
        note_failure(rank, end);
      }
    }
  }

  void note_failure(const Rank& rank, const RankEnd& end) {
    // A lost peer is what the others see of a failure. Who says more, or was cut off, is nearer to the cause.
    const bool ended_by_us = deadline_ && Clock::now() >= *deadline_;
    if (ended_by_us && end.is_signal() && !end.report.text.empty()) {
      words_.push_back("rank " + std::to_string(rank.number) + ": " + end.report.text);
    }
    const bool says_more = end.is_cut() ? !is_first_cut_
                                        : end.code != static_cast<int>(ExitCode::Communication) &&
                                              end.code != static_cast<int>(ExitCode::Stopped) &&
                                              end.code < 128;
    const bool is_consequence =
        first_.code == static_cast<int>(ExitCode::Communication) ||
        (first_.code == static_cast<int>(ExitCode::Stopped) && end.is_cut());
    const bool explains = is_consequence && !is_first_cut_ && says_more && !ended_by_us;
    if (first_.code != 0 && !explains) {
      return;
    }
    is_first_cut_ = end.is_cut();
    is_first_by_signal_ = end.is_signal();
    first_ = end.is_signal() ? FirstFailure{end.code, death_message(rank, end)}
             : end.is_cut()  ? left(rank, end)
                             : FirstFailure{end.code, end.report.text};
    if (first_.message.empty() && end.code != static_cast<int>(ExitCode::Stopped) &&
        end.code < 128) {
      first_.message = format(Failure(
          static_cast<ExitCode>(end.code),
          "rank " + std::to_string(rank.number) + " ended with code " + std::to_string(end.code),
          "see " + request_.log_folder));
    }
    if (first_.code != static_cast<int>(ExitCode::Stopped)) {
      limit(kGraceAfterFailure);
    }
  }

  /// A rank that ended by an exit code without being done: whatever the code, the run did not go on.
  FirstFailure left(const Rank& rank, const RankEnd& end) const {
    const std::string who = "rank " + std::to_string(rank.number);
    if (!end.report.text.empty()) {  // it knew that it ends
      const bool is_failure = end.code != 0 && end.code != static_cast<int>(ExitCode::Stopped);
      return {is_failure ? end.code : static_cast<int>(ExitCode::Communication), end.report.text};
    }
    const auto with_place = [&](Failure failure) {
      failure.with("rank", std::to_string(rank.number)).with("host", host_name());
      failure.with("exit_code", std::to_string(end.code));
      return FirstFailure{static_cast<int>(failure.code()), format(failure)};
    };
    if (const auto inside = rank.board.inside(rank.pid); !inside.empty()) {
      return with_place(Failure(
          ExitCode::Plugin, who + " was ended by a plugin: " + joined(inside, ", or "),
          "a plugin must not end the process: it returns an error; see " + request_.log_folder));
    }
    if (end.code == kCannotLoad && !rank.board.is_in_use()) {
      return with_place(Failure(
          ExitCode::Environment, who + " cannot start: a library that it needs is not there",
          "see the loader's line above; LibTorch must be where it was when ciuic was built"));
    }
    return with_place(Failure(ExitCode::Communication,
                              who + " ended before it was done, outside of any plugin's call",
                              "does a thread or an exit handler of a plugin, or a library, end the "
                              "process? see " +
                                  request_.log_folder));
  }

  /// A rank that crashed has said of which plugin, function and library.
  std::string death_message(const Rank& rank, const RankEnd& rank_end) const {
    constexpr std::string_view kPrefix = "ciuic: error: ";
    const std::string_view report = rank_end.report.text;
    const int signal = WTERMSIG(rank_end.status);
    const std::string end = "rank " + std::to_string(rank.number) + " was ended by signal " +
                            std::to_string(signal) + " (" + strsignal(signal) + ")";
    if (report.substr(0, kPrefix.size()) == kPrefix) {
      return std::string(kPrefix) + end + ": " + std::string(report.substr(kPrefix.size())) +
             "; see " + request_.log_folder;
    }
    // A stack that is used up, or a handler that a plugin took away: no words, but the board.
    const auto inside =
        signal == SIGKILL ? std::vector<std::string>{} : rank.board.inside(rank.pid);
    Failure failure(
        ExitCode::Communication, end + (inside.empty() ? "" : ": " + joined(inside, ", or ")),
        signal == SIGKILL
            ? "was it killed by hand, or by the kernel for lack of memory? " + request_.after_kill
            : "see " + request_.log_folder);
    failure.with("rank", std::to_string(rank.number)).with("host", host_name());
    failure.with("pid", std::to_string(rank.pid));
    return format(failure);
  }

  static Report read_report(int fd) {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(n));
    }
    const size_t mark = text.rfind('\0');
    if (mark == std::string::npos) {
      return {text, false};
    }
    return {text.substr(0, mark), text.compare(mark + 1, std::strlen(kDoneMark), kDoneMark) == 0};
  }

  int finish() const {
    if (stop_signals_ >= 2 && (first_.code >= 128 || is_first_by_signal_)) {
      std::fprintf(stderr, "ciuic: stopped at once by a second signal; %s\n",
                   request_.after_stop.c_str());
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
  bool is_first_cut_ = false;  // by a signal or an exit() in the middle
  bool is_first_by_signal_ = false;
  bool is_asked_for_words_ = false;
  std::vector<std::string> words_;  // of ranks that had to be ended
};

}  // namespace

int launch(const LaunchRequest& request) { return Launcher(request).run(); }

}  // namespace ciuic::core
