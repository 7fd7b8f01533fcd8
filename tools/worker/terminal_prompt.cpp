// SPDX-License-Identifier: MIT
#include "tools/worker/terminal_prompt.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <string_view>
#include <unistd.h>

#include "core/log/failure.h"

namespace ciuic::tools {
namespace {

std::atomic<bool> raised{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

void on_interrupt(int) { raised = true; }

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;  // without SA_RESTART: a read ends
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

core::Failure io_failure(const std::string& what) {
  const int error = errno;
  return core::Failure(core::ExitCode::Storage, what + ": " + std::strerror(error), "",
                       {{"errno", std::to_string(error)}});
}

}  // namespace

InterruptRequest::InterruptRequest() { set_handler(&on_interrupt); }
InterruptRequest::~InterruptRequest() { set_handler(SIG_DFL); }
bool InterruptRequest::is_raised() { return raised; }
void InterruptRequest::clear() { raised = false; }

std::optional<std::string> read_line(const std::string& prompt) {
  std::fputs(prompt.c_str(), stderr);
  std::string line;
  for (;;) {
    if (InterruptRequest::is_raised()) {
      InterruptRequest::clear();
      line.clear();
      std::fprintf(stderr, "\n%s", prompt.c_str());
    }
    // A Ctrl-C that comes before the wait, or to another thread, does not end it: so it ends itself.
    constexpr int kLookAgainMs = 100;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, kLookAgainMs) <= 0) {
      continue;
    }
    char c = 0;
    const ssize_t got = read(STDIN_FILENO, &c, 1);  // the terminal gives whole lines anyway
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      throw io_failure("cannot read from stdin");
    } else if (got == 0) {
      std::fputs("\n", stderr);
      return std::nullopt;
    } else if (c == '\n') {
      return line;
    } else {
      line += c;
    }
  }
}

std::string read_stdin(size_t most) {
  std::string text;
  char some[65536];
  while (text.size() <= most) {
    const ssize_t got = read(STDIN_FILENO, some, sizeof(some));
    if (got < 0 && errno != EINTR) {
      throw io_failure("cannot read from stdin");
    }
    if (got == 0) {
      return text;
    }
    text.append(some, got > 0 ? static_cast<size_t>(got) : 0);
  }
  throw core::Failure(core::ExitCode::Usage,
                      "the text on stdin has more than " + std::to_string(most) + " bytes",
                      "give a shorter one");
}

void write_stdout(std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = write(STDOUT_FILENO, text.data(), text.size());
    if (done < 0 && errno != EINTR) {
      throw io_failure("cannot write to stdout");
    }
    text.remove_prefix(done > 0 ? static_cast<size_t>(done) : 0);
  }
}

}  // namespace ciuic::tools
