// SPDX-License-Identifier: MIT
#include "core/parallel/mesh.h"

#include <stdexcept>
#include <utility>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

/// first, first + stride, ...: `count` ranks.
MeshGroup every(std::string name, int first, int stride, int count, int rank) {
  MeshGroup group{std::move(name), {}, (rank - first) / stride};
  for (int i = 0; i < count; ++i) {
    group.ranks.push_back(first + i * stride);
  }
  return group;
}

}  // namespace

std::vector<MeshGroup> mesh_groups(int world, int rank, int expert) {
  if (expert < 1 || world % expert != 0) {
    throw Failure(ExitCode::Usage,
                  "parallel.expert: got " + std::to_string(expert) +
                      ", expected a divisor of the " + std::to_string(world) + " ranks",
                  "each expert group has as many ranks");
  }
  std::vector<MeshGroup> groups{every("world", 0, 1, world, rank),
                                every("data", 0, 1, world, rank)};
  const int place = rank % expert;
  if (expert > 1) {
    groups.push_back(every("expert", rank - place, 1, expert, rank));
  }
  groups.push_back(every("expert_data", place, expert, world / expert, rank));
  groups.push_back(every("control", 0, 1, world, rank));
  return groups;
}

uint32_t group_id(const std::vector<MeshGroup>& groups, std::string_view name) {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].name == name) {
      return static_cast<uint32_t>(i + 1);
    }
  }
  throw std::logic_error("the mesh has no group " + std::string(name));
}

}  // namespace ciuic::core
