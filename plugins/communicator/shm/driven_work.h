// SPDX-License-Identifier: MIT
//
// A work whose waiter drives its engine, so that no other thread needs to be woken on the way.
#pragma once

#include <memory>

#include "batch.h"

namespace ciuic::plugins::shm {

class Engine;

[[nodiscard]] Work make_driven_work(std::shared_ptr<Engine> engine, std::shared_ptr<Batch> batch);

}  // namespace ciuic::plugins::shm
