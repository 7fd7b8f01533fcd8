// SPDX-License-Identifier: MIT
#include "growth.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>

#include <ciuic/error.hpp>

namespace ciuic::plugins {
namespace {

using Wide = __int128;

/// A whole number above 0 with K, M, B or T, as in the run file: "2B", "14.3T". Nothing: it is none.
std::optional<int64_t> parse_count(const std::string& text) {
  constexpr Wide kMost = 1'000'000'000'000'000;
  size_t i = 0;
  Wide digits = 0;
  Wide divisor = 1;
  bool has_point = false;
  for (; i < text.size() && (std::isdigit(static_cast<unsigned char>(text[i])) != 0 ||
                             (text[i] == '.' && !has_point && i > 0));
       ++i) {
    if (text[i] == '.') {
      has_point = true;
      continue;
    }
    digits = digits * 10 + (text[i] - '0');
    divisor *= has_point ? 10 : 1;
    if (digits > kMost || divisor > kMost) {
      return std::nullopt;
    }
  }
  if (i == 0 || text[i - 1] == '.' || text.size() > i + 1) {
    return std::nullopt;
  }
  const std::string units = "KMBT";
  Wide factor = 1;
  if (i < text.size()) {
    const size_t unit = units.find(text[i]);
    if (unit == std::string::npos) {
      return std::nullopt;
    }
    for (size_t u = 0; u <= unit; ++u) {
      factor *= 1000;
    }
  }
  const Wide value = digits * factor / divisor;
  const bool is_whole = digits * factor % divisor == 0;
  return is_whole && value > 0 && value <= kMost ? std::optional(static_cast<int64_t>(value))
                                                 : std::nullopt;
}

[[noreturn]] void refuse(const std::string& option, const std::string& text,
                         const std::string& why) {
  throw Error(CIUIC_INVALID, option + ": \"" + text + "\" " + why);
}

}  // namespace

Growth::Point Growth::parse(const std::string& option, const std::string& text) {
  const std::string expected =
      "is no point; expected \"15360 by 469B tokens\" (on a line) or \"6144 from 100 steps\" (at "
      "once), in steps, samples or tokens";
  std::istringstream words(text);
  std::string value, how, position, unit, more;
  words >> value >> how >> position >> unit;
  const auto to = parse_count(value);
  const auto at = parse_count(position);
  const bool is_line = how == "by";
  if (!to || !at || (!is_line && how != "from") || words >> more) {
    refuse(option, text, expected);
  }
  Point point{*to, is_line, *at, Unit::Steps};
  if (unit == "samples" || unit == "sample") {
    point.unit = Unit::Samples;
  } else if (unit == "tokens" || unit == "token") {
    point.unit = Unit::Tokens;
  } else if (unit != "steps" && unit != "step") {
    refuse(option, text, expected);
  }
  return point;
}

Growth::Growth(const std::string& option, int64_t first, const std::vector<std::string>& points)
    : first_(first) {
  Point before{first, false, 0, Unit::Steps};
  for (const std::string& text : points) {
    const Point point = parse(option, text);
    if (!points_.empty() && point.unit != before.unit) {
      refuse(option, text, "has another unit than the point before it; keep to one");
    }
    if (point.position <= before.position) {
      refuse(option, text, "is not after the point before it");
    }
    if (point.value < before.value) {
      refuse(
          option, text,
          "is below the value before it, " + std::to_string(before.value) + "; it can only grow");
    }
    points_.push_back(point);
    before = point;
  }
}

int64_t Growth::at(const Done& done) const {
  int64_t value = first_;
  int64_t begin = 0;
  for (const Point& point : points_) {
    const Wide here = point.unit == Unit::Steps     ? Wide{done.steps}
                      : point.unit == Unit::Samples ? Wide{done.samples}
                                                    : Wide{done.samples} * done.sample_tokens;
    if (here >= point.position) {
      value = point.value;
      begin = point.position;
      continue;
    }
    if (point.is_line) {
      value += static_cast<int64_t>(Wide{point.value - value} * (here - begin) /
                                    (point.position - begin));
    }
    break;
  }
  return value;
}

std::vector<int64_t> Growth::values() const {
  std::vector<int64_t> out{first_};
  for (const Point& point : points_) {
    out.push_back(point.value);
  }
  return out;
}

bool Growth::has_lines() const {
  return std::any_of(points_.begin(), points_.end(), [](const Point& p) { return p.is_line; });
}

}  // namespace ciuic::plugins
