// SPDX-License-Identifier: MIT
//
// The groups that a block's collectives run in. Where parts lie on all ranks of a parameter's group,
// that is the group itself; with shard_ranks it is split: neighbours share a model, and the ranks of
// equal place among their neighbours are replicas of each other.
#pragma once

#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

#include "sharding/layout.h"

namespace ciuic::plugins::stages {

struct BlockGroups {
  const ciuic_group* shard = nullptr;     // over the parts
  const ciuic_group* replicas = nullptr;  // over those with the same part; NULL: there are none
  const ciuic_group* second = nullptr;    // ciuic_param.sum_group
};

/// By block. Splits are collective: every rank makes the same ones, in the order of the plan's groups.
std::vector<BlockGroups> make_groups(const Host& host, const Settings& settings,
                                     const Layout& layout, ArrayView<ciuic_group> groups);

}  // namespace ciuic::plugins::stages
