// SPDX-License-Identifier: MIT
#include "cores.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sched.h>
#include <set>
#include <sstream>

namespace ciuic::plugins::shm {
namespace {

/// "max 100000" or "150000 100000": microseconds in a period.
int quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string most;
  double period = 0;
  if (!(file >> most >> period) || most == "max" || period <= 0) {
    return CPU_SETSIZE;
  }
  return std::max(1, static_cast<int>(std::floor(std::stod(most) / period)));
}

/// Kuhn's matching: finds rank r a core, moving earlier ranks to others where that helps.
bool place(size_t r, const std::vector<std::set<int>>& cores, std::set<int>& visited,
           std::vector<int>& rank_on) {
  for (const int core : cores[r]) {
    if (!visited.insert(core).second) {
      continue;
    }
    int& taken = rank_on[static_cast<size_t>(core)];
    if (taken < 0 || place(static_cast<size_t>(taken), cores, visited, rank_on)) {
      taken = static_cast<int>(r);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string text;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) {
        text += (text.empty() ? "" : ",") + std::to_string(core);
      }
    }
  }
  return text + "/" + std::to_string(quota());
}

bool have_a_core_each(const std::vector<std::string>& cores_of_ranks) {
  std::vector<std::set<int>> cores;
  int least_quota = CPU_SETSIZE;
  for (const std::string& text : cores_of_ranks) {
    std::istringstream list(text.substr(0, text.find('/')));
    std::set<int>& own = cores.emplace_back();
    for (std::string core; std::getline(list, core, ',');) {
      own.insert(std::stoi(core));
    }
    least_quota = std::min(least_quota, std::stoi(text.substr(text.find('/') + 1)));
  }
  if (static_cast<size_t>(least_quota) < cores.size()) {
    return false;
  }
  std::vector<int> rank_on(CPU_SETSIZE, -1);
  for (size_t r = 0; r < cores.size(); ++r) {
    std::set<int> visited;
    if (!place(r, cores, visited, rank_on)) {
      return false;
    }
  }
  return true;
}

}  // namespace ciuic::plugins::shm
