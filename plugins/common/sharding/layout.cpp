// SPDX-License-Identifier: MIT
#include "sharding/layout.h"

#include <algorithm>

namespace ciuic::plugins::stages {
namespace {

const ciuic_group& find_group(const Settings& settings, ArrayView<ciuic_group> groups,
                              const ciuic_param& p) {
  for (const ciuic_group& g : groups) {
    if (g.id == p.group) {
      return g;
    }
  }
  throw Error(CIUIC_INVALID, settings.who + ": parameter " + std::string(to_view(p.name)) +
                                 " belongs to group " + std::to_string(p.group) +
                                 ", which the plan does not list");
}

/// Ranks over which a group of `size` cuts its buckets.
int32_t num_parts(const Settings& settings, const ciuic_group& group) {
  if (settings.stage == 0) {
    return 1;
  }
  if (settings.shard_ranks == 0 || settings.shard_ranks >= group.size) {
    return group.size;
  }
  if (group.size % settings.shard_ranks != 0) {
    throw Error(CIUIC_INVALID, "shard_ranks = " + std::to_string(settings.shard_ranks) +
                                   " does not divide the " + std::to_string(group.size) +
                                   " ranks of group " + std::string(to_view(group.name)) +
                                   "; take a divisor, or 0 for all ranks");
  }
  return static_cast<int32_t>(settings.shard_ranks);
}

}  // namespace

std::string Block::units() const {
  const std::string first = std::to_string(bucket.units.front());
  const std::string last = std::to_string(bucket.units.back());
  return first == last ? "unit " + first : "units " + first + "-" + last;
}

Layout::Layout(const Settings& settings, const ciuic_shard_plan& plan)
    : params_(plan.params), roots_(params_.size()), places_(params_.size()) {
  check(settings);
  // Values and gradients that come and go by the unit lie by the unit.
  const auto span =
      settings.stage >= 2 ? sharding::BucketSpan::kOneUnit : sharding::BucketSpan::kUnits;
  for (sharding::Bucket& bucket : sharding::plan_buckets(params_, settings.bucket_bytes, span)) {
    Block& block = blocks_.emplace_back();
    block.bucket = std::move(bucket);
    block.group = &find_group(settings, plan.groups, params_[block.bucket.params[0]]);
    cut(settings, block);
    for (size_t i = 0; i < block.bucket.params.size(); ++i) {
      places_[block.bucket.params[i]] = {blocks_.size() - 1, block.bucket.offsets[i]};
    }
  }
  for (uint64_t id = 0; id < params_.size(); ++id) {
    units_.resize(std::max(units_.size(), size_t{params_[id].unit} + 1));
    Unit& unit = units_[params_[id].unit];
    unit.params.push_back(id);
    const size_t block = places_[roots_[id]].block;
    if (std::find(unit.blocks.begin(), unit.blocks.end(), block) == unit.blocks.end()) {
      unit.blocks.push_back(block);
    }
  }
  for (Unit& unit : units_) {
    std::sort(unit.blocks.begin(), unit.blocks.end());
  }
}

void Layout::check(const Settings& settings) {
  for (uint64_t id = 0; id < params_.size(); ++id) {
    const ciuic_param& p = params_[id];
    const std::string who = settings.who + ": parameter " + std::string(to_view(p.name));
    if (p.id != id) {
      throw Error(CIUIC_INVALID, who + " has id " + std::to_string(p.id) + ", expected its index");
    }
    if (p.granule < 1) {
      throw Error(CIUIC_INVALID, who + " has granule " + std::to_string(p.granule) +
                                     ", expected 1 or more elements");
    }
    roots_[id] = sharding::root_of(params_, id);
    const ciuic_param& root = params_[roots_[id]];
    if (root.num_elements != p.num_elements || !same(root.value, p.value) ||
        !same(root.grad, p.grad) || root.group != p.group) {
      throw Error(CIUIC_INVALID, who + " is tied to " + std::string(to_view(root.name)) +
                                     " but differs in size, type or group");
    }
  }
}

void Layout::cut(const Settings& settings, Block& block) const {
  const ciuic_group& group = *block.group;
  block.parts = num_parts(settings, group);
  block.part = group.rank % block.parts;
  block.replicas = group.size / block.parts;
  block.replica = group.rank / block.parts;

  std::vector<sharding::FlatPiece> pieces;
  for (size_t i = 0; i < block.bucket.params.size(); ++i) {
    const ciuic_param& p = params_[block.bucket.params[i]];
    pieces.push_back({block.bucket.offsets[i], p.num_elements, p.granule});
  }
  block.edges = sharding::cut(pieces, {0, block.bucket.elements}, block.parts);
  block.own = segments(block, block.own_range());

  std::vector<sharding::FlatPiece> own_pieces;
  for (const Segment& s : block.own) {
    own_pieces.push_back({s.at, s.end - s.begin, params_[s.param].granule});
  }
  const std::vector<int64_t> shares = sharding::cut(own_pieces, block.own_range(), block.replicas);
  const auto share = static_cast<size_t>(block.replica);
  for (const Segment& s : segments(block, {shares[share], shares[share + 1]})) {
    // Of an empty parameter the first rank writes that it is there.
    if (s.begin < s.end || group.rank == 0) {
      block.written.push_back(s);
    }
  }
}

std::vector<Segment> Layout::segments(const Block& block, Range range) const {
  std::vector<Segment> out;
  for (size_t i = 0; i < block.bucket.params.size(); ++i) {
    const uint64_t id = block.bucket.params[i];
    const int64_t offset = block.bucket.offsets[i];
    const int64_t count = params_[id].num_elements;
    const Range r = sharding::intersection(range, {offset, offset + count});
    if (!r.empty() || count == 0) {
      out.push_back({id, count == 0 ? 0 : r.begin - offset, count == 0 ? 0 : r.end - offset,
                     count == 0 ? range.begin : r.begin});
    }
  }
  return out;
}

std::vector<ciuic_extent> extents_of(const Settings& settings, const ciuic_shard_plan& plan,
                                     const OptimizerService& optimizer) {
  std::vector<ciuic_extent> out;
  const Layout layout(settings, plan);
  for (const Block& block : layout.blocks()) {
    const sharding::Bucket& kind = block.bucket;
    const bool is_cut = block.parts > 1;
    const bool has_wire = block.group->size > 1 && !same(kind.grad, kind.reduce) &&
                          !(is_cut && settings.stage >= 2);  // there it lives for one reduction
    for (int32_t owner = 0; owner < block.group->size; ++owner) {
      if ((plan.flags & CIUIC_PLAN_OWN) != 0 && owner != block.group->rank) {
        continue;
      }
      const auto add = [&](uint32_t role, ciuic_dtype dtype, int from_stage) {
        const Range range = settings.stage >= from_stage ? block.range(owner % block.parts)
                                                         : Range{0, kind.elements};
        for (const Segment& s : layout.segments(block, range)) {
          out.push_back({s.param, s.begin, s.end, owner, role, dtype, 0});
        }
      };
      add(CIUIC_ROLE_VALUE, kind.value, 3);
      if (!kind.is_trained) {
        continue;
      }
      add(CIUIC_ROLE_GRAD, kind.grad, 2);
      if (has_wire) {
        add(CIUIC_ROLE_REDUCE, kind.reduce, 2);
      }
      if (!same(kind.master, kind.value)) {
        add(CIUIC_ROLE_MASTER, kind.master, 1);
      }
      for (const Segment& s : layout.segments(block, block.range(owner % block.parts))) {
        for (const ciuic_state_spec& spec : optimizer.state_spec(layout.params()[s.param])) {
          out.push_back({s.param, s.begin, s.end, owner, CIUIC_ROLE_MOMENT, spec.dtype, 0});
        }
      }
    }
  }
  return out;
}

}  // namespace ciuic::plugins::stages
