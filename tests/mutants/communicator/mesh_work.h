// SPDX-License-Identifier: MIT
//
// The work of a mesh communicator: a Completion, with votes, and with progress by whoever waits
// where no thread makes it.
#pragma once

#include <memory>

#include "engine.h"

namespace ciuic::mutants {

/// One reference.
[[nodiscard]] Work make_mesh_work(Host host, const std::shared_ptr<Behaviour>& behaviour,
                                  const std::shared_ptr<Engine>& engine,
                                  const std::shared_ptr<Batch>& batch);

}  // namespace ciuic::mutants
