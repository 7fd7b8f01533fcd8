// SPDX-License-Identifier: MIT
//
// The operations of one submit, which end together, and one of them as it waits for its turn.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include <ciuic/work.hpp>

#include "communicator/key_value.h"
#include "communicator/request.h"

namespace ciuic::plugins::shm {

struct Batch {
  Batch(const Host& host, size_t size) : done(host), remaining(size) {}

  const Completion done;
  size_t remaining;                    // guarded by the driver's lock
  std::atomic<bool> has_ended{false};  // done was told
  std::atomic<bool> has_failed{false};
};

struct Task {
  Request request;
  std::shared_ptr<Batch> batch;
  Clock::time_point deadline;
};

}  // namespace ciuic::plugins::shm
