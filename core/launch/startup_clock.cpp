// SPDX-License-Identifier: MIT
#include "core/launch/startup_clock.h"

#include <charconv>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace ciuic::core {
namespace {

double seconds_between(int64_t begin, int64_t end) {
  return static_cast<double>(end - begin) / 1e9;
}

}  // namespace

int64_t host_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t process_start_ns() {
  // Field 22 of /proc/self/stat, counted behind the name, which may hold spaces: ticks since boot.
  std::ifstream file("/proc/self/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) {
    fields >> field;
  }
  const int64_t now = host_clock_ns();
  int64_t ticks = 0;
  if (std::from_chars(field.data(), field.data() + field.size(), ticks).ec != std::errc()) {
    return now;
  }
  const int64_t start = ticks * (1'000'000'000 / sysconf(_SC_CLK_TCK));
  return start > 0 && start < now ? start : now;
}

std::string LaunchTimes::text() const {
  return std::to_string(launcher_start) + "," + std::to_string(rank_start);
}

LaunchTimes LaunchTimes::parse(const std::string& text) {
  LaunchTimes times;
  const char* end = text.data() + text.size();
  const auto [comma, error] = std::from_chars(text.data(), end, times.launcher_start);
  if (error != std::errc() || comma == end ||
      std::from_chars(comma + 1, end, times.rank_start).ec != std::errc()) {
    return {};
  }
  return times;
}

StartupClock::StartupClock(const LaunchTimes& launch)
    : last_(launch.launcher_start > 0 ? launch.launcher_start : process_start_ns()) {
  if (launch.launcher_start > 0) {
    parts_.emplace_back("launch", seconds_between(last_, launch.rank_start));
    last_ = launch.rank_start;
  }
}

void StartupClock::lap(std::string part) {
  const int64_t now = host_clock_ns();
  parts_.emplace_back(std::move(part), seconds_between(last_, now));
  last_ = now;
}

double StartupClock::seconds() const {
  double sum = 0;
  for (const auto& [part, seconds] : parts_) {
    sum += seconds;
  }
  return sum;
}

std::string StartupClock::json() const {
  nlohmann::ordered_json object{{"seconds", seconds()}};
  for (const auto& [part, seconds] : parts_) {
    object[part] = seconds;
  }
  return object.dump();
}

}  // namespace ciuic::core
