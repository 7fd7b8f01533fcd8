// SPDX-License-Identifier: MIT
//
// The sums themselves: started as buckets are complete, looked at when somebody needs them.
#include <algorithm>
#include <utility>

#include "sharding/gradients.h"

namespace ciuic::plugins::stages {

// ---- the first sum ----

void Gradients::start(size_t index, const ciuic_stream* stream) {
  const Block& block = layout_.blocks()[index];
  Filled& f = filled_[index];
  if (slots_.is_tree) {
    close_slots(index, slots_.micro_batches, stream);
  } else {
    zero_unwritten(index, stream);
  }
  look_for_non_finite(index, stream);
  f.is_started = true;
  if (block.group->size > 1 && block.bucket.elements > 0) {
    slots_.is_tree ? start_exchange(index, stream) : start_sum(index, stream);
  }
  if (sums_each_time(f)) {
    restart(index);
  }
}

/// Before the sum hides whose they are.
void Gradients::look_for_non_finite(size_t index, const ciuic_stream* stream) {
  if (names_bad_rank_) {
    for (const uint64_t id : layout_.blocks()[index].bucket.params) {
      ops_.add_stats(flat(id, filled_[index].whole), blame_[id], stream);
    }
  }
}

void Gradients::start_sum(size_t index, const ciuic_stream* stream) {
  const Block& block = layout_.blocks()[index];
  const sharding::Bucket& kind = block.bucket;
  Filled& f = filled_[index];
  const bool is_cast = !same(kind.grad, kind.reduce);
  Flight flight;
  flight.block = index;
  flight.is_last = f.is_complete;
  flight.wire = is_cast ? f.wire : f.whole;
  if (has_second(index) && !f.is_cut) {
    make_second_room(stream);
  }
  if (f.is_cut) {
    const int64_t bytes = kind.elements * dtype_bytes(kind.reduce);
    make_room(bytes, stream);
    bytes_in_flight_ += bytes;
    flight.pooled = is_cast ? pool_.take(bytes) : std::exchange(f.lent, Buffer());
    flight.wire = flat_tensor(flight.pooled, kind.reduce, kind.elements, device_);
  }
  if (is_cast) {
    ops_.copy(f.whole, flight.wire, stream);
  }
  if (f.is_cut) {
    give_back_whole(f);
  }
  const BlockGroups& g = groups_[index];
  flights_.push_back(std::move(flight));
  Flight& started = flights_.back();
  started.pending =
      block.parts > 1
          ? transport_.reduce_scatter(*g.shard, started.wire, block.edges, f.label, stream)
          : transport_.all_reduce(*g.replicas, started.wire, f.label, stream);
}

/// Each rank gets all ranks' sums of its part, and adds them itself.
void Gradients::start_exchange(size_t index, const ciuic_stream* stream) {
  const Block& block = layout_.blocks()[index];
  const ciuic_group& group = *block.group;
  const Filled& f = filled_[index];
  std::vector<Range> to;
  const std::vector<int64_t> edges = exchange_edges(index);
  for (int32_t r = 0; r < group.size; ++r) {
    const auto i = static_cast<size_t>(r);
    to.push_back(block.parts > 1 ? block.range(r % block.parts) : Range{edges[i], edges[i + 1]});
  }
  const int64_t elements = to[static_cast<size_t>(group.rank)].size() * group.size;
  const ciuic_dtype type = block.bucket.grad;
  Flight& flight = flights_.emplace_back();
  flight.block = index;
  flight.is_last = true;
  flight.received = Buffer(host_, device_, static_cast<size_t>(elements * dtype_bytes(type)));
  flight.wire = flat_tensor(flight.received, type, elements, device_);
  flight.pending = transport_.exchange(group, f.whole, to, flight.wire, f.label, stream);
}

/// Even parts for buckets that stay whole.
std::vector<int64_t> Gradients::exchange_edges(size_t index) const {
  const Block& block = layout_.blocks()[index];
  std::vector<int64_t> edges;
  for (int32_t r = 0; r <= block.group->size; ++r) {
    edges.push_back(sharding::even_edge(block.bucket.elements, r, block.group->size));
  }
  return edges;
}

void Gradients::make_room(int64_t bytes, const ciuic_stream* stream) {
  while (!flights_.empty() && bytes_in_flight_ + bytes > most_in_flight_) {
    land(stream);
  }
}

/// Two sums back there is one whose second sum may start: it is there by now, if anything is.
void Gradients::make_second_room(const ciuic_stream* stream) {
  while (flights_.size() >= 2) {
    land(stream);
  }
}

/// Waits for the oldest sum and puts it where it belongs.
void Gradients::land(const ciuic_stream* stream) {
  Flight& flight = flights_.front();
  flight.pending.wait(host_);
  const Block& block = layout_.blocks()[flight.block];
  Filled& f = filled_[flight.block];
  if (flight.received.size() > 0 || slots_.is_tree) {
    take_exchanged(flight, stream);
  } else if (f.is_cut) {
    add_to_own(flight.block, slice(flight.wire, block.own_range()), stream);
    bytes_in_flight_ -= static_cast<int64_t>(flight.pooled.size());
    pool_.give_back(std::move(flight.pooled));
  } else if (!same(block.bucket.grad, block.bucket.reduce)) {
    ops_.copy(slice(flight.wire, block.own_range()), f.own, stream);
  }
  const size_t index = flight.block;
  const bool is_last = flight.is_last;
  flights_.pop_front();
  if (is_last && has_second(index)) {
    follow(index, stream);
  }
}

void Gradients::land_all(const ciuic_stream* stream) {
  while (!flights_.empty()) {
    land(stream);
  }
}

void Gradients::take_exchanged(const Flight& flight, const ciuic_stream* stream) {
  const Block& block = layout_.blocks()[flight.block];
  Filled& f = filled_[flight.block];
  const ciuic_group& group = *block.group;
  const Tensor sum = add_tree(ops_, flight.wire, slot_order_.of(group, slots_), stream);
  if (block.parts > 1) {
    ops_.copy(sum, f.own, stream);
  } else {
    const std::vector<int64_t> edges = exchange_edges(flight.block);
    const auto r = static_cast<size_t>(group.rank);
    ops_.copy(sum, slice(f.whole, {edges[r], edges[r + 1]}), stream);
  }
  if (f.is_cut) {
    give_back_whole(f);
  }
}

void Gradients::add_to_own(size_t index, const Tensor& sum, const ciuic_stream* stream) {
  if (std::exchange(filled_[index].has_sum, true)) {
    ops_.add(sum, filled_[index].own, stream);
  } else {
    ops_.copy(sum, filled_[index].own, stream);
  }
}

// ---- what follows the first sum ----

/// Replicas of a part add theirs; the parts of a tree sum that all need whole are gathered.
bool Gradients::has_second(size_t index) const {
  const Block& block = layout_.blocks()[index];
  const bool is_cut = block.parts > 1;
  return block.bucket.elements > 0 &&
         (slots_.is_tree ? !is_cut && block.group->size > 1 : is_cut && block.replicas > 1);
}

/// Starts the second sum, once a step; all ranks come here in the same order.
void Gradients::follow(size_t index, const ciuic_stream* stream) {
  if (!std::exchange(filled_[index].has_followed, true)) {
    start_second(index, stream);
  }
}

void Gradients::start_second(size_t index, const ciuic_stream* stream) {
  if (!slots_.is_tree) {
    start_reduce(index, *groups_[index].replicas, stream);
    return;
  }
  Filled& f = filled_[index];
  const ciuic_group& group = *layout_.blocks()[index].group;
  const std::vector<int64_t> edges = exchange_edges(index);
  const auto r = static_cast<size_t>(group.rank);
  f.second = transport_.all_gather(group, slice(f.whole, {edges[r], edges[r + 1]}), f.whole, edges,
                                   f.label, stream);
}

void Gradients::start_reduce(size_t index, const ciuic_group& group, const ciuic_stream* stream) {
  const sharding::Bucket& kind = layout_.blocks()[index].bucket;
  Filled& f = filled_[index];
  f.second_wire = f.own;
  if (!same(kind.grad, kind.reduce)) {
    const int64_t elements = num_elements(f.own.c());
    f.second_memory =
        Buffer(host_, device_, static_cast<size_t>(elements * dtype_bytes(kind.reduce)));
    f.second_wire = flat_tensor(f.second_memory, kind.reduce, elements, device_);
    ops_.copy(f.own, f.second_wire, stream);
  }
  f.second = transport_.all_reduce(group, f.second_wire, f.label, stream);
}

void Gradients::finish_second(size_t index, const ciuic_stream* stream) {
  Filled& f = filled_[index];
  f.second.wait(host_);
  if (f.second_memory.size() > 0) {
    ops_.copy(f.second_wire, f.own, stream);
    f.second_memory = Buffer();
  }
}

/// In the order of parameters: the two sides of such a sum (pipeline stages) complete their buckets
/// at different times.
void Gradients::sum_second_groups(const ciuic_stream* stream) {
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t b = 0; b < filled_.size(); ++b) {
    if (is_trained(b) && groups_[b].second != nullptr) {
      order.emplace_back(layout_.blocks()[b].bucket.params.front(), b);
    }
  }
  std::sort(order.begin(), order.end());
  for (const auto& [param, block] : order) {
    start_reduce(block, *groups_[block].second, stream);
  }
  for (const auto& [param, block] : order) {
    finish_second(block, stream);
  }
}

}  // namespace ciuic::plugins::stages
