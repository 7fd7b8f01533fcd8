// SPDX-License-Identifier: MIT
//
// What rank 0 shows a person: on a terminal one bar that is drawn again, else one line a step. On
// stdout.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ciuic::core {

class Progress {
 public:
  enum class Style { Silent, Lines, Bar };

  Progress(Style style, uint64_t first_step, uint64_t total_steps);
  ~Progress();

  /// Style for this process: Silent for ranks other than 0 and with --quiet; a bar when stdout is a
  /// terminal.
  static Style choose(bool is_first, bool is_quiet, bool has_steps_on_lines);

  struct Step {
    uint64_t step = 0;
    double loss = 0;
    double learning_rate = 0;
    double grad_norm = 0;
    double tokens_per_second = 0;
    double step_seconds = 0;
  };
  void step(const Step& step);
  /// A line of its own: validation, a checkpoint.
  void note(const std::string& line);

 private:
  [[nodiscard]] std::string time_to_go(const Step& step);
  void clear_bar();

  Style style_;
  uint64_t first_step_;
  uint64_t total_steps_;
  double mean_step_seconds_ = 0;  // exponential, over about 20 steps
  bool is_bar_drawn_ = false;
  std::chrono::steady_clock::time_point last_draw_{};
};

/// "1h 02m", "3m 20s", "12s".
std::string short_duration(double seconds);

}  // namespace ciuic::core
