// SPDX-License-Identifier: MIT
//
// A run's folder: its lock, its layout, its checkpoints. One living run owns it.
//
//   metrics.jsonl  config.resolved.toml  log/rank-N.log  checkpoints/step-00000100/
//   checkpoints/latest  lock
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ciuic::core {

class RunFolder {
 public:
  /// Creates the folder if need be and takes its lock. With `afresh`, an old folder with a run in
  /// it is first moved aside to <path>.1, .2, ...: nothing is deleted. Throws Failure: Usage, with
  /// the pid, when a living run has the folder; Storage when it cannot be written.
  static RunFolder claim(const std::string& path, bool afresh);
  /// Reads a folder that another process has claimed (a rank that the launcher started).
  static RunFolder join(const std::string& path) { return RunFolder(path, -1); }

  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string metrics() const { return path_ + "/metrics.jsonl"; }
  [[nodiscard]] std::string resolved_config() const { return path_ + "/config.resolved.toml"; }
  [[nodiscard]] std::string log_of_rank(int rank) const {
    return path_ + "/log/rank-" + std::to_string(rank) + ".log";
  }
  [[nodiscard]] std::string checkpoints() const { return path_ + "/checkpoints"; }
  [[nodiscard]] std::string checkpoint_of_step(uint64_t step) const;
  /// Where an old run was moved to by claim; empty: nowhere.
  [[nodiscard]] const std::string& moved_to() const noexcept { return moved_to_; }
  /// Keeps the lock for a child process, which inherits this descriptor.
  [[nodiscard]] int lock_fd() const noexcept { return lock_fd_; }

 private:
  RunFolder(std::string path, int lock_fd) : path_(std::move(path)), lock_fd_(lock_fd) {}

  std::string path_;
  std::string moved_to_;
  int lock_fd_;
};

/// Checkpoints below `folder`/checkpoints as (step, path), newest first. By name alone: not opened,
/// not verified.
std::vector<std::pair<uint64_t, std::string>> checkpoints_in(const std::string& run_folder);

/// Renames checkpoints above `step` in a claimed folder to abandoned-<name>: a run that goes on from an
/// earlier step would else mix two histories. Returns the new paths.
std::vector<std::string> set_aside_above(const RunFolder& folder, uint64_t step);

/// Removes what a killed save left in a claimed folder: checkpoints under their working names.
/// Returns their paths.
std::vector<std::string> sweep_unfinished(const RunFolder& folder);

/// A run's folder, and the file checkpoints/latest in it, stand for the latest checkpoint: the path
/// of that, or `path` itself. Throws Failure (Storage) for a run's folder without a checkpoint.
std::string resolve_model_path(const std::string& path);

/// Writes `text` to `path` so that a reader sees the old or the new file, also after a power cut.
/// Throws Failure (Storage).
void replace_file(const std::string& path, const std::string& text);

}  // namespace ciuic::core
