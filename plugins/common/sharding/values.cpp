// SPDX-License-Identifier: MIT
#include "sharding/values.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ciuic::plugins::stages {
namespace {

/// One work that ends with the last of several.
Work all_of(const Host& host, std::vector<Work> works) {
  if (works.size() < 2) {
    return works.empty() ? Work() : std::move(works.front());
  }
  const auto& threads = host.service<ciuic_thread_service>("ciuic.threads");
  std::vector<ciuic_work*> handles;
  for (const Work& w : works) {
    handles.push_back(w.get());
  }
  ciuic_work* all = nullptr;
  host.check(threads.all(threads.ctx, to_array(handles), &all));
  return Work(all);
}

}  // namespace

Values::Values(const Host& host, ciuic_device device, const Settings& settings,
               const Layout& layout, const std::vector<BlockGroups>& groups,
               const Transport& transport)
    : host_(host),
      device_(device),
      layout_(layout),
      groups_(groups),
      transport_(transport),
      cuts_values_(settings.stage >= 3),
      pool_(host, device),
      held_(layout.blocks().size()) {
  allocate(device);
  int64_t largest = 0;
  for (uint32_t unit = 0; unit < layout.num_units(); ++unit) {
    largest = std::max(largest, bytes_of_unit(unit));
  }
  pool_.set_capacity(2 * largest);
}

Values::~Values() {
  const Settling settling(host_, -1);
  for (Held& h : held_) {
    settling.wait(h.pending);
  }
}

void Values::allocate(ciuic_device device) {
  const TensorOps ops(host_);
  for (size_t i = 0; i < held_.size(); ++i) {
    Held& h = held_[i];
    const Block& block = layout_.blocks()[i];
    const ciuic_dtype type = block.bucket.value;
    h.is_transient = cuts_values_ && block.parts > 1;
    const int64_t elements = h.is_transient ? block.own_range().size() : block.bucket.elements;
    const Buffer& memory =
        memory_.emplace_back(host_, device, static_cast<size_t>(elements * dtype_bytes(type)));
    const Tensor all = flat_tensor(memory, type, elements, device);
    ops.fill(all, 0);
    h.own = h.is_transient ? all : slice(all, block.own_range());
    h.whole = h.is_transient ? Tensor() : all;
    if (block.parts > 1 && block.bucket.elements > 0) {
      transport_.check_gathers(*groups_[i].shard, type);
    }
  }
}

int64_t Values::bytes_of_unit(uint32_t unit) const {
  int64_t bytes = 0;
  for (const size_t b : layout_.blocks_of_unit(unit)) {
    const sharding::Bucket& bucket = layout_.blocks()[b].bucket;
    bytes += held_[b].is_transient ? bucket.elements * dtype_bytes(bucket.value) : 0;
  }
  return bytes;
}

void* Values::data(uint64_t root) const {
  const Held& h = held_[layout_.block_of(root)];
  const ciuic_dl& t = h.whole.c().t;
  return t.data == nullptr
             ? nullptr
             : static_cast<char*>(t.data) + layout_.offset_of(root) * dtype_bytes(t.dtype);
}

bool Values::uses(int64_t unit, size_t block) const {
  if (unit < 0) {
    return false;
  }
  const std::vector<size_t>& blocks = layout_.blocks_of_unit(static_cast<uint32_t>(unit));
  return std::binary_search(blocks.begin(), blocks.end(), block);
}

// ---- gathers ----

void Values::gather(size_t index, const ciuic_stream* stream) {
  Held& h = held_[index];
  const Block& block = layout_.blocks()[index];
  const ciuic_dtype type = block.bucket.value;
  if (block.bucket.elements == 0) {
    return;
  }
  h.gathered = pool_.take(block.bucket.elements * dtype_bytes(type));
  h.whole = flat_tensor(h.gathered, type, block.bucket.elements, device_);
  try {
    h.pending = transport_.all_gather(*groups_[index].shard, h.own, h.whole, block.edges,
                                      "values " + block.units(), stream);
  } catch (const Error&) {
    release(index);
    throw;
  }
}

void Values::release(size_t index) {
  Held& h = held_[index];
  h.pending.wait(host_);
  h.whole = Tensor();
  pool_.give_back(std::exchange(h.gathered, Buffer()));
}

Work Values::bind(uint32_t unit, const ciuic_stream* stream) {
  for (const size_t b : layout_.blocks_of_unit(unit)) {
    if (!is_here(held_[b])) {
      gather(b, stream);
    }
  }
  std::vector<Work> works;
  for (const size_t b : layout_.blocks_of_unit(unit)) {
    Held& h = held_[b];
    if (h.pending.has_more_to_do()) {
      h.pending.wait(host_);
    } else if (h.pending.is_pending()) {
      works.push_back(h.pending.work());
    }
  }
  Work all = all_of(host_, std::move(works));
  for (const size_t b : layout_.blocks_of_unit(unit)) {
    ++held_[b].binds;
  }
  return all;
}

void Values::gather_ahead(uint32_t bound, const Ahead& ahead, const ciuic_stream* stream) {
  if (!cuts_values_ || ahead.other < 0) {
    return;
  }
  for (size_t b = 0; b < held_.size(); ++b) {
    if (held_[b].gathered.size() > 0 && !uses(bound, b) && !uses(ahead.other, b)) {
      return;  // a third unit is bound
    }
  }
  for (const size_t b : layout_.blocks_of_unit(static_cast<uint32_t>(ahead.other))) {
    if (!is_here(held_[b])) {
      gather(b, stream);
    }
  }
}

void Values::drop(uint32_t unit, const Ahead& ahead) {
  for (const size_t b : layout_.blocks_of_unit(unit)) {
    Held& h = held_[b];
    if (--h.binds == 0 && !h.is_transient) {
      h.pending.wait(host_);
    }
  }
  for (size_t b = 0; b < held_.size(); ++b) {
    const bool is_wanted = held_[b].binds > 0 || uses(ahead.next, b) || uses(ahead.other, b);
    if (held_[b].gathered.size() > 0 && !is_wanted) {
      release(b);
    }
  }
}

// ---- updates ----

void Values::publish(const ciuic_stream* stream) {
  forget_gathered();
  // In the order in which forward will want them.
  for (size_t i = held_.size(); i-- > 0;) {
    Held& h = held_[i];
    const Block& block = layout_.blocks()[i];
    const bool travels = block.parts > 1 && block.bucket.elements > 0;
    if (!h.is_transient && travels && block.bucket.is_trained) {
      h.pending.wait(host_);
      h.pending = transport_.all_gather(*groups_[i].shard, h.own, h.whole, block.edges,
                                        "values " + block.units(), stream);
    }
  }
}

void Values::forget_gathered() {
  for (size_t i = 0; i < held_.size(); ++i) {
    if (held_[i].gathered.size() > 0) {
      release(i);
    }
  }
}

void Values::settle(int64_t timeout_ns) {
  const Settling settling(host_, timeout_ns);
  for (Held& h : held_) {
    h.pending.wait(host_, settling.left_ns());
  }
}

void Values::rollback(int64_t timeout_ns) {
  const Settling settling(host_, timeout_ns);
  for (size_t i = 0; i < held_.size(); ++i) {
    Held& h = held_[i];
    h.binds = 0;
    if (h.is_transient && h.gathered.size() > 0) {
      settling.wait(h.pending);
      release(i);
    }
  }
}

}  // namespace ciuic::plugins::stages
