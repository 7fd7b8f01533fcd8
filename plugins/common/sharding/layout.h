// SPDX-License-Identifier: MIT
//
// Who holds what: buckets of parameters, cut into parts over the ranks. The stages of ZeRO
// (arXiv:1910.02054, sec. 5) differ in what is cut:
//
//   stage 0   nothing (ddp)                    stage 2   and gradients
//   stage 1   masters and optimizer state      stage 3   and values
//
// With shard_ranks = n, parts lie on groups of n neighbouring ranks, and every group has all of them
// (hybrid sharding). A pure function of the plan: it also serves estimates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ciuic/abi/sharding.h>
#include <ciuic/sharding/bucket_plan.hpp>
#include <ciuic/sharding/partition.hpp>

#include "sharding/services.h"

namespace ciuic::plugins::stages {

using sharding::Range;

struct Settings {
  std::string who;  // for messages: "sharding zero1"
  int stage = 0;
  int64_t bucket_bytes = 0;
  int64_t shard_ranks = 0;    // 0: all ranks of a parameter's group
  bool name_bad_rank = true;  // look for non-finite values before a sum hides whose they are
};

/// A range of one parameter in a bucket.
struct Segment {
  uint64_t param;
  int64_t begin, end;  // its elements
  int64_t at;          // where `begin` lies in the bucket
};

/// A bucket and its parts. Of the group's ranks, those with the same part are its replicas.
struct Block {
  sharding::Bucket bucket;
  const ciuic_group* group = nullptr;
  int32_t parts = 1, part = 0;
  int32_t replicas = 1, replica = 0;
  std::vector<int64_t> edges;    // parts + 1
  std::vector<Segment> own;      // this rank's part
  std::vector<Segment> written;  // what of it this rank writes to a state: no replica does

  [[nodiscard]] Range range(int32_t of_part) const {
    return {edges[static_cast<size_t>(of_part)], edges[static_cast<size_t>(of_part) + 1]};
  }
  [[nodiscard]] Range own_range() const { return range(part); }
  /// "unit 3", "units 0-2"
  [[nodiscard]] std::string units() const;
};

class Layout {
 public:
  /// `plan` stays valid. Throws INVALID.
  Layout(const Settings& settings, const ciuic_shard_plan& plan);

  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] ArrayView<ciuic_param> params() const { return params_; }
  [[nodiscard]] uint64_t root(uint64_t param) const { return roots_[param]; }
  /// Where a root's storage is: its block, and its first element there.
  [[nodiscard]] size_t block_of(uint64_t root) const { return places_[root].block; }
  [[nodiscard]] int64_t offset_of(uint64_t root) const { return places_[root].offset; }

  [[nodiscard]] uint32_t num_units() const { return static_cast<uint32_t>(units_.size()); }
  [[nodiscard]] const std::vector<uint64_t>& params_of_unit(uint32_t unit) const {
    return units_[unit].params;
  }
  /// Blocks with a parameter that the unit uses, tied ones too.
  [[nodiscard]] const std::vector<size_t>& blocks_of_unit(uint32_t unit) const {
    return units_[unit].blocks;
  }

  /// What `owner`, a rank of the block's group, has of it.
  [[nodiscard]] std::vector<Segment> segments(const Block& block, Range range) const;

 private:
  struct Place {
    size_t block;
    int64_t offset;
  };
  struct Unit {
    std::vector<uint64_t> params;
    std::vector<size_t> blocks;
  };
  void check(const Settings& settings);
  void cut(const Settings& settings, Block& block) const;

  ArrayView<ciuic_param> params_;
  std::vector<Block> blocks_;
  std::vector<uint64_t> roots_;
  std::vector<Place> places_;
  std::vector<Unit> units_;
};

/// The answer to ciuic_sharding_vt.plan.
std::vector<ciuic_extent> extents_of(const Settings& settings, const ciuic_shard_plan& plan,
                                     const OptimizerService& optimizer);

}  // namespace ciuic::plugins::stages
