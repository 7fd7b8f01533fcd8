// SPDX-License-Identifier: MIT
//
// metrics.jsonl, by rank 0: one write per line and at once, appended over restarts.
#pragma once

#include <cstdint>
#include <string>

#include "core/train/json_line.h"

namespace ciuic::core {

class MetricsFile {
 public:
  /// Opens for appending; a torn last line (a kill in the middle of a write) is cut off. Throws
  /// Failure (Storage).
  explicit MetricsFile(const std::string& path);
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  ~MetricsFile();

  /// Throws Failure (Storage) when the disk is full.
  void write(const JsonLine& line);
  /// Has this attempt's `run` line been written? An `end` without one would belong to nobody.
  [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }
  void mark_begun() noexcept { has_begun_ = true; }
  /// The last line says how the run ended, and the run has ended otherwise since: a plugin brought a
  /// rank down after that line. Writes another end, which counts. For the launcher.
  static void correct_end(const std::string& path, int exit_code);
  /// 1 for a new run; one more at each start.
  [[nodiscard]] uint64_t attempt() const noexcept { return attempt_; }

 private:
  std::string path_;
  int fd_;
  uint64_t attempt_ = 1;
  bool has_begun_ = false;
};

}  // namespace ciuic::core
