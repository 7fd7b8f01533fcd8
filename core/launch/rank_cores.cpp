// SPDX-License-Identifier: MIT
#include "core/launch/rank_cores.h"

#include <string>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

Failure too_few(int rank, int threads, int cores) {
  return Failure(ExitCode::Environment,
                 "rank " + std::to_string(rank) + " with " + std::to_string(threads) +
                     " threads gets no cores of its own: this process may use " +
                     std::to_string(cores),
                 "start fewer ranks or threads, or leave --pin out");
}

}  // namespace

RankCores::RankCores(int rank, int threads) {
  CPU_ZERO(&before_);
  sched_getaffinity(0, sizeof(before_), &before_);
  cpu_set_t own;
  CPU_ZERO(&own);
  int place = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &before_) != 0) {
      if (place / threads == rank) {
        CPU_SET(core, &own);
      }
      ++place;
    }
  }
  if (CPU_COUNT(&own) < threads || sched_setaffinity(0, sizeof(own), &own) != 0) {
    throw too_few(rank, threads, place);
  }
}

RankCores::~RankCores() { sched_setaffinity(0, sizeof(before_), &before_); }

}  // namespace ciuic::core
