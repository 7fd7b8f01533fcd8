// SPDX-License-Identifier: MIT
#include "core/launch/environment.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <string_view>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

Failure environment_failure(const std::string& what) {
  return Failure(
      ExitCode::Environment, what,
      "a launcher sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; unset RANK and WORLD_SIZE to "
      "let ciuic start its own ranks");
}

int integer(const char* name, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw environment_failure(std::string(name) + ": got \"" + text +
                              "\", expected a whole number from " + std::to_string(least) + " to " +
                              std::to_string(most));
  }
  return value;
}

int optional_integer(const char* name, int fallback, int least, int most) {
  const auto text = variable(name);
  return text ? integer(name, *text, least, most) : fallback;
}

/// CPU quota of cgroup v2 or v1, in cores; 0 when there is none.
double cgroup_cores() {
  double quota = -1;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2) {
    std::string text;
    v2 >> text >> period;
    quota = text == "max" ? -1 : std::atof(text.c_str());
  } else {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

std::optional<RankIdentity> rank_from_environment(const std::string& rendezvous) {
  constexpr int kMostRanks = 1 << 20;
  const auto rank = variable("RANK");
  const auto world = variable("WORLD_SIZE");
  if (!rank && !world) {
    return std::nullopt;
  }
  if (!rank || !world) {
    throw environment_failure(std::string(rank ? "WORLD_SIZE" : "RANK") + " is not set, but " +
                              (rank ? "RANK" : "WORLD_SIZE") + " is");
  }
  RankIdentity id;
  id.world = integer("WORLD_SIZE", *world, 1, kMostRanks);
  id.rank = integer("RANK", *rank, 0, id.world - 1);
  id.local_world = optional_integer("LOCAL_WORLD_SIZE", id.world, 1, id.world);
  id.local_rank = optional_integer("LOCAL_RANK", id.rank % id.local_world, 0, id.local_world - 1);
  if (rendezvous == "auto" || rendezvous == "env://") {
    for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
      if (!variable(name)) {
        throw environment_failure(std::string(name) + " is not set, but RANK and WORLD_SIZE are");
      }
    }
    integer("MASTER_PORT", *variable("MASTER_PORT"), 1, 65535);
  }
  return id;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  if (const double quota = cgroup_cores(); quota > 0) {
    cores = std::min(cores, static_cast<int>(std::ceil(quota)));
  }
  return std::max(cores, 1);
}

}  // namespace ciuic::core
