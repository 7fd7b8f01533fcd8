// SPDX-License-Identifier: MIT
//
// One process of ciuic-probe: started with a request on its stdin, read line by line with a deadline
// for each, ended with everything that it started.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>

#include "core/plugin/open_file.h"

namespace ciuic::core {

class ProbeProcess {
 public:
  /// Throws Failure (Environment) when it cannot be started.
  ProbeProcess(const std::string& executable, const std::string& request);
  ProbeProcess(const ProbeProcess&) = delete;
  ProbeProcess& operator=(const ProbeProcess&) = delete;
  /// Kills what is left of it.
  ~ProbeProcess();

  enum class Outcome { Line, Ended, Silent, TooMuch, Interrupted };
  /// The next line, within `patience`.
  Outcome next_line(std::chrono::milliseconds patience, std::string& line);

  /// After Ended or a kill: "signal 6 (Aborted)" or "exit code 1", and the end of what it printed.
  [[nodiscard]] std::string how_it_ended();

 private:
  void start(const std::string& executable, int in, int out, int errors);
  void feed();
  void kill_group() noexcept;
  [[nodiscard]] bool has_ended() const noexcept;
  /// Takes what there is to read. False at the end of the stream.
  static bool take(const OpenFile& from, std::string& into, size_t limit);

  pid_t pid_ = -1;
  std::string request_;
  size_t fed_ = 0;
  OpenFile input_, answers_, errors_;
  std::string unread_;   // of answers, up to the next newline
  std::string printed_;  // the end of stderr
  size_t total_ = 0;
  int status_ = 0;
};

}  // namespace ciuic::core
