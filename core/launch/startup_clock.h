// SPDX-License-Identifier: MIT
//
// Start-up: from the launcher's start to the end of a rank's first step, part by part.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ciuic::core {

/// Nanoseconds of the clock that all processes of a host share and that never goes back.
int64_t host_clock_ns();
/// When this process was made, on that clock; exec does not move it. To 10 ms, as the kernel tells.
int64_t process_start_ns();

/// Two moments before a rank's own code runs.
struct LaunchTimes {
  int64_t launcher_start = 0;  // 0: no launcher of ours
  int64_t rank_start = 0;

  /// As an argument of a rank: "<ns>,<ns>".
  [[nodiscard]] std::string text() const;
  /// Nothing known where the text is none.
  static LaunchTimes parse(const std::string& text);
};

class StartupClock {
 public:
  explicit StartupClock(const LaunchTimes& launch);

  /// What was done since the last lap.
  void lap(std::string part);

  /// In order; adds up to seconds().
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& parts() const { return parts_; }
  [[nodiscard]] double seconds() const;
  /// {"seconds": ..., "launch": ..., ...}
  [[nodiscard]] std::string json() const;

 private:
  int64_t last_;
  std::vector<std::pair<std::string, double>> parts_;
};

}  // namespace ciuic::core
