// SPDX-License-Identifier: MIT
#include "sharding/groups.h"

#include <string>

namespace ciuic::plugins::stages {
namespace {

/// A split that takes longer has lost a rank.
constexpr int64_t kSplitTimeoutNs = 120'000'000'000;

const ciuic_group* split(const Host& host, const ciuic_group& parent, const std::string& name,
                         const std::vector<int32_t>& ranks) {
  const auto& comm = host.service<ciuic_comm_service>("ciuic.comm");
  ciuic_split request{};
  request.struct_size = sizeof(request);
  request.ranks = ranks.data();
  request.count = static_cast<uint32_t>(ranks.size());
  request.name = to_str(name);
  request.timeout_ns = kSplitTimeoutNs;
  const ciuic_group* made = nullptr;
  host.check(comm.split(comm.ctx, parent.id, &request, &made));
  return made;
}

BlockGroups groups_of(const Host& host, const Settings& settings, const Block& block) {
  const ciuic_group& group = *block.group;
  if (block.replicas == 1) {
    return {&group, nullptr, nullptr};
  }
  if (block.parts == 1) {
    return {nullptr, &group, nullptr};
  }
  std::vector<int32_t> neighbours;
  for (int32_t i = 0; i < block.parts; ++i) {
    neighbours.push_back(block.replica * block.parts + i);
  }
  std::vector<int32_t> replicas;
  for (int32_t i = 0; i < block.replicas; ++i) {
    replicas.push_back(i * block.parts + block.part);
  }
  const std::string name(to_view(group.name));
  const std::string plugin = settings.who.substr(settings.who.find(' ') + 1);
  BlockGroups out;
  out.shard = split(host, group, name + " " + plugin + " shard", neighbours);
  out.replicas = split(host, group, name + " " + plugin + " replicas", replicas);
  return out;
}

const ciuic_group* find(ArrayView<ciuic_group> groups, uint32_t id, const Settings& settings) {
  for (const ciuic_group& g : groups) {
    if (g.id == id) {
      return g.size > 1 ? &g : nullptr;
    }
  }
  throw Error(CIUIC_INVALID, settings.who + ": a parameter's sum_group is " + std::to_string(id) +
                                 ", which the plan does not list");
}

}  // namespace

std::vector<BlockGroups> make_groups(const Host& host, const Settings& settings,
                                     const Layout& layout, ArrayView<ciuic_group> groups) {
  std::vector<BlockGroups> out(layout.blocks().size());
  for (const ciuic_group& group : groups) {
    const BlockGroups* made = nullptr;  // one split serves all blocks of the group
    for (size_t i = 0; i < out.size(); ++i) {
      const Block& block = layout.blocks()[i];
      if (block.group->id == group.id) {
        out[i] = made != nullptr ? *made : groups_of(host, settings, block);
        made = &out[i];
      }
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const uint32_t id = layout.blocks()[i].bucket.sum_group;
    out[i].second = id == 0 ? nullptr : find(groups, id, settings);
  }
  return out;
}

}  // namespace ciuic::plugins::stages
