// SPDX-License-Identifier: MIT
#include "core/config/problem.h"

#include <algorithm>
#include <tuple>

namespace ciuic::core {

std::string format(const Problem& problem) {
  std::string text = problem.file;
  if (problem.line > 0) {
    text += ":" + std::to_string(problem.line);
  }
  if (problem.column > 0) {
    text += ":" + std::to_string(problem.column);
  }
  return text + ": " + problem.message;
}

std::string format(std::span<const Problem> problems) {
  std::string text;
  for (const Problem& problem : problems) {
    text += (text.empty() ? "" : "\n") + format(problem);
  }
  return text;
}

void sort_by_place(std::vector<Problem>& problems) {
  auto key = [](const Problem& p) {
    return std::make_tuple(Where{p.file, 0}.is_override(), std::cref(p.file), p.line, p.column);
  };
  std::stable_sort(problems.begin(), problems.end(),
                   [&](const Problem& a, const Problem& b) { return key(a) < key(b); });
}

}  // namespace ciuic::core
