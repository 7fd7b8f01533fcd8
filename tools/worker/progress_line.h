// SPDX-License-Identifier: MIT
//
// How far a long evaluation is, on stderr: one line that is drawn again on a terminal, else a line
// every ten seconds. Silent with --quiet.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ciuic::tools {

class ProgressLine final {
 public:
  ProgressLine(int64_t total_tokens, bool is_quiet);

  /// `tokens` done so far, with this mean loss.
  void update(int64_t tokens, double loss);
  /// The last line, with the rate over all.
  void finish(int64_t tokens, double loss);

 private:
  [[nodiscard]] double seconds() const;

  int64_t total_tokens_;
  bool is_quiet_, is_terminal_;
  std::chrono::steady_clock::time_point begin_, last_;
};

}  // namespace ciuic::tools
