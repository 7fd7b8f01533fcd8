// SPDX-License-Identifier: MIT
#include "rank_process.h"

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

#include "core/parallel/rendezvous_socket.h"

extern char** environ;

namespace ciuic::tests {

RankProcess::RankProcess(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& under) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe2 failed");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  const std::string program = CIUIC_BUILD_DIR "/tests/" CIUIC_RANK_PROGRAM;
  std::vector<char*> argv;
  for (const std::string& argument : under) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(const_cast<char*>(program.c_str()));
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const int failed = ::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  pipe_ = ends[0];
  if (failed != 0) {
    pid_ = -1;
    throw std::runtime_error("cannot start " + program);
  }
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pipe_(std::exchange(other.pipe_, -1)),
      exit_code_(other.exit_code_),
      output_(std::move(other.output_)) {}

RankProcess::~RankProcess() {
  if (pid_ > 0) {
    finish(std::chrono::steady_clock::now());
  }
  if (pipe_ >= 0) {
    ::close(pipe_);
  }
}

void RankProcess::kill() const { ::kill(pid_, SIGKILL); }

void RankProcess::read_some(int timeout_ms) {
  pollfd wait{pipe_, POLLIN, 0};
  char buffer[4096];
  while (::poll(&wait, 1, timeout_ms) > 0) {
    const ssize_t n = ::read(pipe_, buffer, sizeof(buffer));
    if (n <= 0) {
      return;
    }
    output_.append(buffer, static_cast<size_t>(n));
    timeout_ms = 0;
  }
}

void RankProcess::finish(std::chrono::steady_clock::time_point deadline) {
  int status = 0;
  while (pid_ > 0) {
    read_some(10);
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      break;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      kill();
      ::waitpid(pid_, &status, 0);
      output_ += "\nkilled at the test's deadline\n";
      break;
    }
  }
  read_some(0);
  pid_ = -1;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string RankProcess::value(const std::string& key) const {
  const std::string wanted = "\n" + key + "=";
  const std::string text = "\n" + output_;
  const size_t at = text.rfind(wanted);
  if (at == std::string::npos) {
    return "";
  }
  const size_t begin = at + wanted.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::vector<RankProcess> run_ranks(int world, const std::string& scenario,
                                   std::chrono::seconds limit) {
  const std::string address = "tcp://127.0.0.1:" + std::to_string(core::free_port());
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < world; ++rank) {
    ranks.emplace_back(
        std::vector<std::string>{scenario, std::to_string(rank), std::to_string(world), address});
  }
  for (RankProcess& rank : ranks) {
    rank.finish(deadline);
  }
  return ranks;
}

void expect_all_succeed(const std::vector<RankProcess>& ranks) {
  for (const RankProcess& rank : ranks) {
    EXPECT_EQ(rank.exit_code(), 0) << rank.output();
  }
}

}  // namespace ciuic::tests
