// SPDX-License-Identifier: MIT
#include "core/config/nearest.h"

#include <algorithm>
#include <vector>

namespace ciuic::core {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

size_t pattern_distance(std::string_view pattern, std::string_view name) {
  std::vector<size_t> last(name.size() + 1);
  std::vector<size_t> row(name.size() + 1);
  for (size_t j = 0; j <= name.size(); ++j) {
    last[j] = j;
  }
  for (const char p : pattern) {
    row[0] = last[0] + (p == '*' ? 0 : 1);
    for (size_t j = 1; j <= name.size(); ++j) {
      const size_t change = last[j - 1] + (p == '?' || p == name[j - 1] ? 0 : 1);
      row[j] = p == '*' ? std::min(last[j], row[j - 1])
                        : std::min({last[j] + 1, row[j - 1] + 1, change});
    }
    std::swap(last, row);
  }
  return last[name.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr size_t kLongestWord =
      64;  // a longer one is no typing error, and the distance is quadratic
  if (word.size() > kLongestWord) {
    return {};
  }
  std::string_view best;
  size_t best_distance = std::max<size_t>(word.size() < 4 ? 1 : 2, word.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    // The beginning of a key is what one types who does not remember its end.
    const bool is_beginning = word.size() >= 4 && candidate.starts_with(word);
    if (is_beginning && best_distance > 1) {
      best = candidate;
      best_distance = 1;
    }
    // A word of two letters is two edits away from every other one: at least one letter must stay.
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view best = nearest(word, candidates);
  return best.empty() ? "" : "; did you mean " + std::string(best) + "?";
}

}  // namespace ciuic::core
