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
  /// With run.reproducible = "any_world": partial sums of the tree over slots, each a whole gradient;
  /// those of zero2 and zero3 are whole as well.
  int64_t slots = 0;
  /// Of units that are whole for a while: two of values where those are shared out, and two of
  /// gradients likewise, the largest that there are.
  int64_t gathered = 0;

  [[nodiscard]] int64_t total() const {
    return values + gradients + reductions + masters + optimizer + slots + gathered;
  }
};

/// Of the first rank, which holds as much as any. `mesh` is that rank's. `any_world_slots`: the
/// rank's micro-batches in a step with run.reproducible = "any_world", else 0.
StateBytes state_bytes(const ShardingPlugin& sharding, const std::vector<ciuic_param>& parameters,
                       const std::vector<MeshGroup>& mesh, int world, uint32_t any_world_slots = 0);

}  // namespace ciuic::core
