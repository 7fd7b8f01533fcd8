// SPDX-License-Identifier: MIT
//
// "This content is being looked at", on disk while it is, so that a plugin which takes ciuic itself
// along (SIGKILL to the process that asked) is known at the next start. ciuic-probe writes the hash
// before it loads a file; this process holds a lock on the mark for as long as it lives. A mark that
// nobody holds any more is stale, and names the culprit.
#pragma once

#include <csignal>
#include <string>

#include "core/plugin/open_file.h"
#include "core/plugin/quarantine.h"

namespace ciuic::core {

class ProbeMark {
 public:
  /// In `state_folder`, which is private already. Without a mark where none can be made.
  explicit ProbeMark(const std::string& state_folder);
  ProbeMark(const ProbeMark&) = delete;
  ProbeMark& operator=(const ProbeMark&) = delete;
  /// Removes it: whatever happened, this process is there to say so.
  ~ProbeMark();

  /// The file for ciuic-probe to write into; empty: none.
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Turns marks of processes that are gone into entries of the quarantine.
  static void settle_stale(const std::string& state_folder, const Quarantine& quarantine);

 private:
  std::string path_;
  OpenFile file_;
};

/// Holds SIGINT, SIGTERM and SIGHUP back while it lives, so that a stop is no mark that was left.
class InterruptsHeldBack {
 public:
  InterruptsHeldBack();
  InterruptsHeldBack(const InterruptsHeldBack&) = delete;
  InterruptsHeldBack& operator=(const InterruptsHeldBack&) = delete;
  ~InterruptsHeldBack();

  /// Is one of them waiting, of whichever thread?
  static bool is_one_pending();

 private:
  sigset_t before_;
};

}  // namespace ciuic::core
