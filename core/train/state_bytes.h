// SPDX-License-Identifier: MIT
//
// What a rank keeps of the model's state, by the sharding plugin's own plan: nothing is allocated.
#pragma once

#include <cstdint>
#include <vector>

#include "core/parallel/mesh.h"
#include "core/plugin/sharding.h"
#include "core/train/parameter_table.h"

namespace ciuic::core {

struct StateBytes {
  int64_t values = 0;
  int64_t gradients = 0;
  int64_t reductions = 0;  // copies in the type in which gradients travel
  int64_t masters = 0;
  int64_t optimizer = 0;
  /// Of units that are whole for a while: two of values where those are shared out, and two of
  /// gradients likewise, the largest that there are.
  int64_t gathered = 0;

  [[nodiscard]] int64_t total() const {
    return values + gradients + reductions + masters + optimizer + gathered;
  }
};

/// Of the first rank, which holds as much as any. `mesh` is that rank's.
StateBytes state_bytes(const ShardingPlugin& sharding, const std::vector<ciuic_param>& parameters,
                       const std::vector<MeshGroup>& mesh, int world);

}  // namespace ciuic::core
