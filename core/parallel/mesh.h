// SPDX-License-Identifier: MIT
//
// The process mesh: which ranks form which group. Pure arithmetic, for runs and estimates alike.
//
//   world        all ranks
//   data         all ranks: each has its own samples, and holds (a share of) every dense parameter
//   expert       `expert` neighbouring ranks, which share out the routed experts of each layer and
//                send each other tokens; there only for expert > 1
//   expert_data  the ranks that hold the same experts: one of each expert group
//   control      all ranks, in host memory: what the host itself says
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ciuic::core {

struct MeshGroup {
  std::string name;
  std::vector<int32_t> ranks;  // global ranks in the group's order
  int rank = 0;                // the asking rank's place
};

/// `rank`'s groups; ids are places in this list, from 1. `expert` divides `world`. Throws Failure
/// (Usage).
std::vector<MeshGroup> mesh_groups(int world, int rank, int expert);

/// The id of the group of that name.
uint32_t group_id(const std::vector<MeshGroup>& groups, std::string_view name);

}  // namespace ciuic::core
