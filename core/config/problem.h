// SPDX-License-Identifier: MIT
//
// What is wrong with a configuration, and where it stands. Problems are values: a reader collects
// all of them, so that a person mends a file in one go.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ciuic::core {

/// A place in a file (`line` from 1), or an override (`file` is "--set run.steps", `line` is 0).
struct Where {
  std::string file;
  int line = 0;

  /// Was this said by `--set`? Then it beats the file.
  [[nodiscard]] bool is_override() const { return file.rfind("--set", 0) == 0; }
};

struct Problem {
  std::string file;
  int line = 0;    // 0: none
  int column = 0;  // 0: none; syntax errors have one
  std::string message;
};

inline Problem problem_at(const Where& where, std::string message) {
  return {where.file, where.line, 0, std::move(message)};
}

/// `configs/x.toml:12: optimizer.gradient_clipp1ng is no key; did you mean gradient_clip_norm?`
std::string format(const Problem& problem);
/// One line each.
std::string format(std::span<const Problem> problems);
/// By file (overrides last), then line.
void sort_by_place(std::vector<Problem>& problems);

}  // namespace ciuic::core
