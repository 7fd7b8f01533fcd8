// SPDX-License-Identifier: MIT
#include "core/config/quantity.h"

#include <array>
#include <limits>
#include <span>

namespace ciuic::core {
namespace {

struct UnitName {
  std::string_view name;
  int64_t factor;
};

constexpr std::array<UnitName, 9> kSizes{{{"TiB", int64_t{1} << 40},
                                          {"GiB", int64_t{1} << 30},
                                          {"MiB", int64_t{1} << 20},
                                          {"KiB", int64_t{1} << 10},
                                          {"TB", 1'000'000'000'000},
                                          {"GB", 1'000'000'000},
                                          {"MB", 1'000'000},
                                          {"KB", 1'000},
                                          {"B", 1}}};
constexpr std::array<UnitName, 7> kDurations{{{"d", 86'400'000'000'000},
                                              {"h", 3'600'000'000'000},
                                              {"m", 60'000'000'000},
                                              {"s", 1'000'000'000},
                                              {"ms", 1'000'000},
                                              {"us", 1'000},
                                              {"ns", 1}}};
constexpr std::array<UnitName, 5> kCounts{
    {{"T", 1'000'000'000'000}, {"B", 1'000'000'000}, {"M", 1'000'000}, {"K", 1'000}, {"", 1}}};

using Wide = __int128;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A decimal without sign or exponent at the front of `text`: digits and how many of them stand
/// behind the point.
struct Decimal {
  int64_t digits = 0;
  int places = 0;
};

std::optional<Decimal> take_decimal(std::string_view& text) {
  constexpr int kMaxPlaces = 15;
  Decimal decimal;
  size_t i = 0;
  bool has_point = false;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !has_point && i > 0) {
      has_point = true;
      continue;
    }
    if (!is_digit(text[i])) {
      break;
    }
    const Wide digits = Wide{decimal.digits} * 10 + (text[i] - '0');
    if (digits > kMax || decimal.places == kMaxPlaces) {
      return std::nullopt;
    }
    decimal.digits = static_cast<int64_t>(digits);
    decimal.places += has_point ? 1 : 0;
  }
  if (i == 0 || text[i - 1] == '.') {
    return std::nullopt;
  }
  text.remove_prefix(i);
  return decimal;
}

/// decimal * factor, if that is whole and fits.
std::optional<int64_t> times(Decimal decimal, int64_t factor) {
  Wide value = Wide{decimal.digits} * factor;
  for (; decimal.places > 0; --decimal.places) {
    if (value % 10 != 0) {
      return std::nullopt;
    }
    value /= 10;
  }
  return value > kMax ? std::nullopt : std::optional(static_cast<int64_t>(value));
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
}

std::optional<int64_t> factor_of(std::string_view name, std::span<const UnitName> units) {
  for (const UnitName& unit : units) {
    if (unit.name == name) {
      return unit.factor;
    }
  }
  return std::nullopt;
}

/// One number and one unit, which may be apart: "64MiB", "64 MiB".
std::optional<int64_t> parse_one(std::string_view text, std::span<const UnitName> units) {
  const auto decimal = take_decimal(text);
  if (!decimal) {
    return std::nullopt;
  }
  skip_spaces(text);
  const auto factor = factor_of(text, units);
  return factor ? times(*decimal, *factor) : std::nullopt;
}

/// With the largest unit that divides it.
std::string format_whole(int64_t value, std::span<const UnitName> units) {
  for (const UnitName& unit : units) {
    if (unit.factor == 1 || (value != 0 && value % unit.factor == 0)) {
      return std::to_string(value / unit.factor) + std::string(unit.name);
    }
  }
  return std::to_string(value);
}

}  // namespace

std::optional<int64_t> parse_size(std::string_view text) { return parse_one(text, kSizes); }

std::string format_size(int64_t bytes) {
  // Powers of two first: 1024000 is better said as 1000KiB than as 1024KB, and both are exact.
  return format_whole(bytes, kSizes);
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  int64_t total = 0;
  do {
    const auto decimal = take_decimal(text);
    if (!decimal) {
      return std::nullopt;
    }
    skip_spaces(text);
    size_t length = 0;
    while (length < text.size() && text[length] >= 'a' && text[length] <= 'z') {
      ++length;
    }
    const auto factor = factor_of(text.substr(0, length), kDurations);
    const auto part = factor ? times(*decimal, *factor) : std::nullopt;
    if (!part || *part > kMax - total) {
      return std::nullopt;
    }
    total += *part;
    text.remove_prefix(length);
  } while (!text.empty());
  return std::chrono::nanoseconds(total);
}

std::string format_duration(std::chrono::nanoseconds duration) {
  return duration.count() == 0 ? "0s" : format_whole(duration.count(), kDurations);
}

std::optional<int64_t> parse_count(std::string_view text) { return parse_one(text, kCounts); }

std::string format_count(int64_t count) { return format_whole(count, kCounts); }

std::optional<Interval> parse_interval(std::string_view text) {
  if (text == "never") {
    return Interval{};
  }
  if (const auto duration = parse_duration(text)) {
    return duration->count() > 0 ? std::optional(Interval{Interval::Unit::Time, duration->count()})
                                 : std::nullopt;
  }
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) {
    return std::nullopt;
  }
  const auto count = parse_count(text.substr(0, space));
  std::string_view unit = text.substr(space);
  skip_spaces(unit);
  if (!count || *count < 1) {
    return std::nullopt;
  }
  if (unit == "steps" || unit == "step") {
    return Interval{Interval::Unit::Steps, *count};
  }
  if (unit == "epochs" || unit == "epoch") {
    return Interval{Interval::Unit::Epochs, *count};
  }
  return std::nullopt;
}

std::string format_interval(Interval interval) {
  switch (interval.unit) {
    case Interval::Unit::Never:
      return "never";
    case Interval::Unit::Steps:
      return std::to_string(interval.count) + (interval.count == 1 ? " step" : " steps");
    case Interval::Unit::Epochs:
      return std::to_string(interval.count) + (interval.count == 1 ? " epoch" : " epochs");
    case Interval::Unit::Time:
      return format_duration(std::chrono::nanoseconds(interval.count));
  }
  return "";
}

}  // namespace ciuic::core
