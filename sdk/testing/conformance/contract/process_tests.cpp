// SPDX-License-Identifier: MIT
//
// The process belongs to the host: its settings stay, and its stdout and stderr too.
#include <cstdio>
#include <iostream>
#include <sys/mman.h>
#include <unistd.h>

#include "../process_state.hpp"
#include "contract_tests.hpp"
#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

/// A life with every function in it that the plugin has.
void full_life(const TestContext& t, Bench& bench, const Calls& calls) {
  Working work(t, bench, calls);
  work.round(0);
  work.round(1);
  work.instance.quiesce();
  MemoryState state;
  work.instance.save(state);
  work.instance.resume();
  work.instance.load(state);
  work.instance.quiesce();
  work.instance.destroy();
}

/// stdout and stderr go to a file in memory while this object lives.
class Captured {
 public:
  Captured() : file_(memfd_create("printed", MFD_CLOEXEC)) {
    std::fflush(nullptr);
    for (int i = 0; i < 2; ++i) {
      saved_[i] = dup(i + 1);
      dup2(file_, i + 1);
    }
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() {
    for (int i = 0; i < 2; ++i) {
      dup2(saved_[i], i + 1);
      close(saved_[i]);
    }
    close(file_);
  }
  /// What was written so far.
  [[nodiscard]] std::string text() const {
    std::fflush(nullptr);
    std::cout.flush();
    std::clog.flush();
    char bytes[400];
    const ssize_t got = pread(file_, bytes, sizeof(bytes), 0);
    return got <= 0 ? "" : std::string(bytes, static_cast<size_t>(got));
  }

 private:
  int file_;
  int saved_[2]{};
};

}  // namespace

void settings_stay(const TestContext& t) {
  Bench bench;
  const Calls calls(bench.host(), [](const char* function, const std::function<void()>& call) {
    const ProcessSettings before = process_settings();
    call();
    const std::string changed = difference(before, process_settings());
    require(changed.empty(), std::string(function) + " changed " + changed +
                                 "; it belongs to the whole process: leave it, or put it back "
                                 "before returning");
  });
  full_life(t, bench, calls);
}

void nothing_is_printed(const TestContext& t) {
  const Captured captured;
  Bench bench;
  const Calls calls(bench.host(), [&](const char* function, const std::function<void()>& call) {
    call();
    const std::string text = captured.text();
    require(text.empty(), std::string(function) + " wrote to stdout or stderr: \"" + text +
                              "\"; use the host's log");
  });
  full_life(t, bench, calls);
}

}  // namespace ciuic::testing::contract
