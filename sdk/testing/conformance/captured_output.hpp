// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <iostream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace ciuic::testing {

/// stdout and stderr go to a file in memory while this object lives.
class CapturedOutput {
 public:
  CapturedOutput() : file_(memfd_create("printed", MFD_CLOEXEC)) {
    std::fflush(nullptr);
    for (int i = 0; i < 2; ++i) {
      saved_[i] = dup(i + 1);
      dup2(file_, i + 1);
    }
  }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;
  ~CapturedOutput() {
    for (int i = 0; i < 2; ++i) {
      dup2(saved_[i], i + 1);
      close(saved_[i]);
    }
    close(file_);
  }
  /// The begin of what was written so far.
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

}  // namespace ciuic::testing
