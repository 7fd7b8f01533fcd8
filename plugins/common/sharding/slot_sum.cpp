// SPDX-License-Identifier: MIT
#include "sharding/slot_sum.h"

#include <algorithm>
#include <string>
#include <utility>

#include <ciuic/sharding/slot_tree.hpp>

namespace ciuic::plugins::stages {
namespace {

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

std::vector<int64_t> gather_first_slots(const Host& host, const ciuic_group& group, int64_t own) {
  std::vector<int64_t> all(static_cast<size_t>(group.size));
  const Tensor in(&own, kI64, {1});
  const Tensor out(all.data(), kI64, {group.size});
  ciuic_collective c{};
  c.struct_size = sizeof(c);
  c.op = CIUIC_OP_ALL_GATHER;
  c.in = in.ptr();
  c.out = out.ptr();
  c.label = to_str("first slots");
  ciuic_work* work = nullptr;
  host.check(group.vt->submit(group.self, {&c, 1, sizeof(c)}, nullptr, &work));
  Work(work).wait(host);
  return all;
}

}  // namespace

const std::vector<int32_t>& SlotOrder::of(const ciuic_group& group, const Slots& slots) {
  const auto known = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& k) { return k.group == group.id; });
  if (known != known_.end() && known->micro_batches == slots.micro_batches &&
      known->first == slots.first) {
    return known->order;
  }
  const std::string name(to_view(group.name));
  if (!is_power_of_two(group.size)) {
    throw Error(CIUIC_UNIMPLEMENTED, who_ + ": any_world needs 1, 2, 4, 8, ... ranks; group " +
                                         name + " has " + std::to_string(group.size));
  }
  if (int64_t{slots.micro_batches} * group.size != int64_t{slots.total}) {
    throw Error(CIUIC_UNIMPLEMENTED,
                who_ + ": any_world needs every slot in every sum, but group " + name + " of " +
                    std::to_string(group.size) + " ranks with " +
                    std::to_string(slots.micro_batches) +
                    " micro-batches each has not all of the " + std::to_string(slots.total) +
                    " slots (experts over ranks, model parallelism)");
  }
  const std::vector<int64_t> firsts = group.size == 1
                                          ? std::vector<int64_t>{slots.first}
                                          : gather_first_slots(host_, group, slots.first);
  std::vector<int32_t> order(firsts.size(), -1);
  for (size_t rank = 0; rank < firsts.size(); ++rank) {
    const int64_t position = firsts[rank] / slots.micro_batches;
    const bool is_free = firsts[rank] % slots.micro_batches == 0 && position < group.size &&
                         order[static_cast<size_t>(position)] < 0;
    if (!is_free) {
      throw Error(CIUIC_INVALID, who_ + ": first slot " + std::to_string(firsts[rank]) +
                                     " of rank " + std::to_string(rank) + " in group " + name +
                                     " is taken or no multiple of " +
                                     std::to_string(slots.micro_batches) + " micro-batches");
    }
    order[static_cast<size_t>(position)] = static_cast<int32_t>(rank);
  }
  Known fresh{group.id, slots.micro_batches, slots.first, std::move(order)};
  if (known != known_.end()) {
    *known = std::move(fresh);
    return known->order;
  }
  return known_.emplace_back(std::move(fresh)).order;
}

void SlotStack::close(const Host& host, const TensorOps& ops, const Tensor& lowest, uint32_t slots,
                      const ciuic_stream* stream) {
  const std::vector<uint32_t> merges = sharding::merges_after(slots);
  ++height_;
  for (uint32_t i = 0; i < merges[open_]; ++i) {
    ops.add(level(lowest, height_ - 1), level(lowest, height_ - 2), stream);
    --height_;
  }
  ++open_;
  if (open_ < slots && height_ > levels_.size()) {
    const ciuic_dl& t = lowest.c().t;
    const int64_t elements = num_elements(lowest.c());
    Level& made = levels_.emplace_back();
    made.memory = Buffer(host, t.device, static_cast<size_t>(elements * dtype_bytes(t.dtype)));
    made.flat = flat_tensor(made.memory, t.dtype, elements, t.device);
    ops.fill(made.flat, 0, stream);
  }
}

Tensor add_tree(const TensorOps& ops, const Tensor& received, const std::vector<int32_t>& order,
                const ciuic_stream* stream) {
  const int64_t part = num_elements(received.c()) / static_cast<int64_t>(order.size());
  const auto of = [&](uint32_t position) {
    return slice(received, {order[position] * part, (order[position] + 1) * part});
  };
  for (const auto& [into, from] : sharding::tree_additions(static_cast<uint32_t>(order.size()))) {
    ops.add(of(from), of(into), stream);
  }
  return of(0);
}

}  // namespace ciuic::plugins::stages
