// SPDX-License-Identifier: MIT
//
// A whole number that only grows over a run: a first value and points, each a sentence.
//
//   "6144 from 10B tokens"    6144 once 10^10 tokens are done
//   "15360 by 469B tokens"    on a straight line from the point before, 15360 once 469 10^9 are done
//
// Positions are steps, samples or tokens; of all points the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ciuic::plugins {

/// What the steps before the one in question did.
struct Done {
  uint64_t steps = 0;
  uint64_t samples = 0;
  uint64_t sample_tokens = 0;  // of each
};

class Growth {
 public:
  /// `option` names the list in messages. Throws INVALID for a sentence that is none, points out of
  /// order, a value that shrinks, units that mix.
  Growth(const std::string& option, int64_t first, const std::vector<std::string>& points);

  /// Rounded down on a line.
  [[nodiscard]] int64_t at(const Done& done) const;

  /// First value and those of the points.
  [[nodiscard]] std::vector<int64_t> values() const;
  [[nodiscard]] bool has_lines() const;

 private:
  enum class Unit { Steps, Samples, Tokens };
  struct Point {
    int64_t value = 0;
    bool is_line = false;
    int64_t position = 0;
    Unit unit = Unit::Steps;
  };
  static Point parse(const std::string& option, const std::string& text);

  int64_t first_;
  std::vector<Point> points_;
};

}  // namespace ciuic::plugins
