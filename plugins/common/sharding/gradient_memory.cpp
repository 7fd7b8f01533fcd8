// SPDX-License-Identifier: MIT
//
// Where gradients lie. A bucket that is cut takes its memory from a pool when backward first writes to
// it: what is in flight is never more than the gradients of one unit, beside the unit in use.
#include <algorithm>
#include <utility>

#include "sharding/gradients.h"

namespace ciuic::plugins::stages {
namespace {

constexpr int64_t kStatsBytes = 2 * sizeof(double);

}  // namespace

Gradients::Gradients(const Host& host, ciuic_device device, const Settings& settings,
                     const Layout& layout, const std::vector<BlockGroups>& groups,
                     const Transport& transport)
    : host_(host),
      device_(device),
      settings_(settings),
      layout_(layout),
      groups_(groups),
      transport_(transport),
      ops_(host),
      pool_(host, device),
      slot_order_(host, settings.who),
      names_bad_rank_(settings.name_bad_rank),
      filled_(layout.blocks().size()),
      params_(layout.params().size()),
      blame_(layout.params().size()) {
  for (size_t b = 0; b < filled_.size(); ++b) {
    if (is_trained(b)) {
      check_transport(b);
      allocate(b);
    }
  }
  most_in_flight_ = most_in_flight();
  pool_.set_capacity(2 * most_in_flight_);
  if (names_bad_rank_) {
    const size_t count = params_.size();
    blame_memory_ = Buffer(host, device, count * kStatsBytes);
    for (size_t i = 0; i < count; ++i) {
      blame_[i] = Tensor(blame_memory_.bytes() + i * kStatsBytes, kF64, {2}, device);
    }
  }
  begin_step({});
}

Gradients::~Gradients() {
  const Settling settling(host_, -1);
  for (Flight& flight : flights_) {
    settling.wait(flight.pending);
  }
  for (Filled& f : filled_) {
    settling.wait(f.second);
  }
}

void Gradients::check_transport(size_t index) const {
  const Block& block = layout_.blocks()[index];
  const BlockGroups& g = groups_[index];
  if (block.bucket.elements == 0) {
    return;
  }
  for (const ciuic_group* group : {block.parts > 1 ? g.shard : nullptr, g.replicas, g.second}) {
    if (group != nullptr) {
      transport_.check_sums(*group, block.bucket.reduce);
    }
  }
}

void Gradients::allocate(size_t index) {
  Filled& f = filled_[index];
  const Block& block = layout_.blocks()[index];
  const sharding::Bucket& kind = block.bucket;
  f.label = "gradients " + block.units();
  f.is_cut = settings_.stage >= 2 && block.parts > 1;
  f.is_reported.resize(kind.units.size());
  const int64_t elements = f.is_cut ? block.own_range().size() : kind.elements;
  f.kept = Buffer(host_, device_, static_cast<size_t>(elements * dtype_bytes(kind.grad)));
  const Tensor all = flat_tensor(f.kept, kind.grad, elements, device_);
  ops_.fill(all, 0);
  f.own = f.is_cut ? all : slice(all, block.own_range());
  f.whole = f.is_cut ? Tensor() : all;
  const bool travels = block.group->size > 1;
  if (!f.is_cut && travels && !same(kind.grad, kind.reduce)) {
    f.wire_memory =
        Buffer(host_, device_, static_cast<size_t>(elements * dtype_bytes(kind.reduce)));
    f.wire = flat_tensor(f.wire_memory, kind.reduce, elements, device_);
    ops_.fill(f.wire, 0);
  }
}

int64_t Gradients::most_in_flight() const {
  int64_t most = 0;
  for (uint32_t unit = 0; unit < layout_.num_units(); ++unit) {
    int64_t bytes = 0;
    for (const size_t b : layout_.blocks_of_unit(unit)) {
      const sharding::Bucket& kind = layout_.blocks()[b].bucket;
      bytes += filled_[b].is_cut ? kind.elements * dtype_bytes(kind.grad) : 0;
    }
    most = std::max(most, bytes);
  }
  return most;
}

void Gradients::take_whole(size_t index) {
  Filled& f = filled_[index];
  const sharding::Bucket& kind = layout_.blocks()[index].bucket;
  f.lent = pool_.take(kind.elements * dtype_bytes(kind.grad));
  f.whole = flat_tensor(f.lent, kind.grad, kind.elements, device_);
}

void Gradients::give_back_whole(Filled& f) {
  f.whole = Tensor();
  f.stack.free();
  pool_.give_back(std::exchange(f.lent, Buffer()));
}

}  // namespace ciuic::plugins::stages
