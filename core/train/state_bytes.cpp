// SPDX-License-Identifier: MIT
#include "core/train/state_bytes.h"

#include <algorithm>
#include <bit>
#include <map>

#include <ciuic/view.hpp>

namespace ciuic::core {
namespace {

int64_t bytes_of(int64_t elements, const ciuic_dtype& dtype) {
  return (elements * static_cast<int64_t>(dtype.bits) * dtype.lanes + 7) / 8;
}

/// The mesh as a plan shows it where nobody communicates.
struct SilentGroups {
  explicit SilentGroups(std::vector<MeshGroup> mesh) : groups(std::move(mesh)) {
    for (const MeshGroup& g : groups) {
      nodes.emplace_back(g.ranks.size(), 0);
      ciuic_group c{};
      c.struct_size = sizeof(c);
      c.id = static_cast<uint32_t>(abi.size() + 1);
      c.rank = g.rank;
      c.size = static_cast<int32_t>(g.ranks.size());
      c.ranks = g.ranks.data();
      c.nodes = nodes.back().data();
      c.name = to_str(g.name);
      abi.push_back(c);
    }
  }
  SilentGroups(const SilentGroups&) = delete;
  SilentGroups& operator=(const SilentGroups&) = delete;

  std::vector<MeshGroup> groups;
  std::vector<std::vector<int32_t>> nodes;
  std::vector<ciuic_group> abi;
};

/// Values, or gradients, as they are where nothing is shared out.
struct Whole {
  int64_t total = 0;
  int64_t largest_unit = 0;
};

Whole whole_of(const std::vector<ciuic_param>& parameters, bool of_values) {
  std::map<uint32_t, int64_t> units;
  Whole whole;
  for (const ciuic_param& p : parameters) {
    if (p.tied_to < 0 && (of_values || (p.flags & CIUIC_PARAM_FROZEN) == 0)) {
      const int64_t bytes = bytes_of(p.num_elements, of_values ? p.value : p.grad);
      whole.total += bytes;
      whole.largest_unit = std::max(whole.largest_unit, units[p.unit] += bytes);
    }
  }
  return whole;
}

}  // namespace

StateBytes state_bytes(const ShardingPlugin& sharding, const std::vector<ciuic_param>& parameters,
                       const std::vector<MeshGroup>& mesh, int world, uint32_t any_world_slots) {
  const SilentGroups groups(mesh);
  ciuic_shard_plan request{};
  request.struct_size = sizeof(request);
  request.flags = CIUIC_PLAN_OWN;
  request.params = to_array(parameters);
  request.groups = to_array(groups.abi);
  request.world = world;
  StateBytes state;
  for (const ciuic_extent& e : sharding.plan(request)) {
    const int64_t bytes = bytes_of(e.end - e.begin, e.dtype);
    switch (e.role) {
      case CIUIC_ROLE_VALUE:
        state.values += bytes;
        break;
      case CIUIC_ROLE_GRAD:
        state.gradients += bytes;
        break;
      case CIUIC_ROLE_REDUCE:
        state.reductions += bytes;
        break;
      case CIUIC_ROLE_MASTER:
        state.masters += bytes;
        break;
      case CIUIC_ROLE_MOMENT:
        state.optimizer += bytes;
        break;
      default:
        break;
    }
  }
  constexpr int64_t kUnitsInFlight = 2;
  const Whole values = whole_of(parameters, /*of_values=*/true);
  const Whole gradients = whole_of(parameters, /*of_values=*/false);
  state.gathered += state.values < values.total ? kUnitsInFlight * values.largest_unit : 0;
  state.gathered += state.gradients < gradients.total ? kUnitsInFlight * gradients.largest_unit : 0;
  if (any_world_slots > 0) {
    // A binary counter of partial sums, and one more during the exchange (docs/sharding.md).
    const int64_t sums = std::bit_width(any_world_slots - 1) + 1;
    state.slots = sums * gradients.total + (gradients.total - state.gradients);
  }
  return state;
}

}  // namespace ciuic::core
