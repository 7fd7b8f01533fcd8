// SPDX-License-Identifier: MIT
//
// Quantities with units, as a person writes them: "64MiB", "30s", "2B", "50 steps". Parsing is
// exact and refuses what does not fit; formatting gives the shortest text that parses back to the
// same value.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ciuic::core {

/// Bytes: B, KB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024); a fraction may stand
/// before a unit if the bytes are whole. Nothing: not a size.
std::optional<int64_t> parse_size(std::string_view text);
std::string format_size(int64_t bytes);

/// ns us ms s m h d; also joined: "1h30m".
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
std::string format_duration(std::chrono::nanoseconds duration);

/// A number with K, M, B or T (powers of 1000): "2B", "14.3T", "16".
std::optional<int64_t> parse_count(std::string_view text);
std::string format_count(int64_t count);

/// How often something is done.
struct Interval {
  enum class Unit { Never, Steps, Epochs, Time };
  Unit unit = Unit::Never;
  int64_t count = 0;  // steps, epochs or nanoseconds; from 1

  friend bool operator==(const Interval&, const Interval&) = default;
};
/// "never", "50 steps", "1 epoch" or a duration.
std::optional<Interval> parse_interval(std::string_view text);
std::string format_interval(Interval interval);

}  // namespace ciuic::core
