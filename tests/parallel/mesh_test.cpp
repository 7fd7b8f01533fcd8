// SPDX-License-Identifier: MIT
#include "core/parallel/mesh.h"

#include <gtest/gtest.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

const MeshGroup& named(const std::vector<MeshGroup>& groups, const std::string& name) {
  return groups.at(group_id(groups, name) - 1);
}

TEST(Mesh, ExpertsAreSharedByNeighboursAndCopiedAcross) {
  const std::vector<MeshGroup> groups = mesh_groups(8, 6, 4);
  EXPECT_EQ(named(groups, "expert").ranks, (std::vector<int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(named(groups, "expert").rank, 2);
  EXPECT_EQ(named(groups, "expert_data").ranks, (std::vector<int32_t>{2, 6}));
  EXPECT_EQ(named(groups, "expert_data").rank, 1);
  EXPECT_EQ(named(groups, "data").ranks.size(), 8U);
  EXPECT_EQ(named(groups, "world").rank, 6);
  EXPECT_EQ(groups.back().name, "control");
}

TEST(Mesh, WithoutAnExpertAxisExpertsAreCopiedEverywhere) {
  const std::vector<MeshGroup> groups = mesh_groups(3, 1, 1);
  EXPECT_EQ(named(groups, "expert_data").ranks, named(groups, "world").ranks);
  EXPECT_THROW((void)group_id(groups, "expert"), std::logic_error);
}

TEST(Mesh, EveryRankIsInTheGroupsThatItsPeersSee) {
  for (int rank = 0; rank < 12; ++rank) {
    for (const MeshGroup& group : mesh_groups(12, rank, 3)) {
      ASSERT_EQ(group.ranks[static_cast<size_t>(group.rank)], rank) << group.name;
      for (const int32_t peer : group.ranks) {
        EXPECT_EQ(named(mesh_groups(12, peer, 3), group.name).ranks, group.ranks);
      }
    }
  }
}

TEST(Mesh, RefusesAxesThatDoNotDivideTheRanks) {
  EXPECT_THROW(mesh_groups(4, 0, 3), Failure);
  EXPECT_THROW(mesh_groups(4, 0, 0), Failure);
}

}  // namespace
}  // namespace ciuic::core
