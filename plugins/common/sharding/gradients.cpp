// SPDX-License-Identifier: MIT
#include "sharding/gradients.h"

#include <algorithm>
#include <utility>

namespace ciuic::plugins::stages {
namespace {

std::string name_of(const ciuic_param& p) { return std::string(to_view(p.name)); }

}  // namespace

Tensor Gradients::flat(uint64_t root, const Tensor& whole) const {
  const int64_t begin = layout_.offset_of(root);
  return slice(whole, {begin, begin + layout_.params()[root].num_elements});
}

void Gradients::begin_step(const Slots& slots) {
  land_all(nullptr);
  for (size_t b = 0; b < filled_.size(); ++b) {
    filled_[b].second.wait(host_);
    restart(b);
    filled_[b].has_sum = filled_[b].is_started = false;
    filled_[b].is_complete = filled_[b].has_followed = false;
    filled_[b].stack.restart();
  }
  slots_ = slots;
  is_flushed_ = is_finished_ = false;
  submitted_ = 0;
  if (names_bad_rank_ && !blame_.empty()) {
    const auto count = static_cast<int64_t>(2 * blame_.size());
    ops_.fill(Tensor(blame_memory_.data(), kF64, {count}, device_), 0);
  }
  for (size_t b = 0; b < filled_.size() && slots.is_tree; ++b) {
    if (is_trained(b)) {
      (void)slot_order_.of(*layout_.blocks()[b].group, slots);
    }
  }
}

/// Nothing is written or reported.
void Gradients::restart(size_t block) {
  Filled& f = filled_[block];
  f.units_missing = layout_.blocks()[block].bucket.units.size();
  std::fill(f.is_reported.begin(), f.is_reported.end(), false);
  for (const uint64_t id : layout_.blocks()[block].bucket.params) {
    params_[id] = {};
  }
}

Gradients::Target Gradients::bind(uint64_t param, const ciuic_use& use,
                                  const ciuic_stream* stream) {
  const uint64_t root = layout_.root(param);
  const ciuic_param& p = layout_.params()[root];
  const size_t block = layout_.block_of(root);
  Filled& f = filled_[block];
  if (!is_trained(block)) {
    return {false, nullptr, false};
  }
  if (p.num_elements == 0) {
    return {true, nullptr, false};
  }
  if (is_flushed_ || f.is_complete) {
    throw Error(CIUIC_PRECONDITION, settings_.who + ": the gradient of " + name_of(p) +
                                        " is wanted after its sum was started");
  }
  if (slots_.is_tree) {
    close_slots(block, use.micro_batch, stream);
  }
  if (f.is_cut && f.lent.size() == 0) {
    take_whole(block);
  }
  const Tensor& target = slots_.is_tree ? f.stack.top(f.whole) : f.whole;
  const bool is_idle = (use.flags & CIUIC_USE_IDLE) != 0;
  const bool is_first = !std::exchange(params_[root].is_written, true);
  if (is_first && is_idle) {
    ops_.fill(flat(root, target), 0, stream);
  }
  params_[root].is_pending = params_[root].is_pending || (is_first && !is_idle);
  char* data = static_cast<char*>(target.c().t.data) +
               layout_.offset_of(root) * dtype_bytes(target.c().t.dtype);
  return {true, data, is_first && !is_idle};
}

void Gradients::ready(const ciuic_use& use, const ciuic_stream* stream) {
  const bool is_idle = (use.flags & CIUIC_USE_IDLE) != 0;
  for (const uint64_t param : layout_.params_of_unit(use.unit)) {
    const uint64_t root = layout_.root(param);
    if (std::exchange(params_[root].is_pending, false) && is_idle) {
      const Filled& f = filled_[layout_.block_of(root)];
      ops_.fill(flat(root, slots_.is_tree ? f.stack.top(f.whole) : f.whole), 0, stream);
    }
  }
  for (const size_t block : layout_.blocks_of_unit(use.unit)) {
    if (is_trained(block) &&
        (sums_each_time(filled_[block]) || (use.flags & CIUIC_USE_LAST_GRAD) != 0)) {
      report(block, use, stream);
    }
  }
  submit_in_order(stream);
}

void Gradients::report(size_t block, const ciuic_use& use, const ciuic_stream* stream) {
  Filled& f = filled_[block];
  const std::vector<uint32_t>& units = layout_.blocks()[block].bucket.units;
  const auto place =
      static_cast<size_t>(std::lower_bound(units.begin(), units.end(), use.unit) - units.begin());
  if (f.is_reported[place] && !sums_each_time(f)) {
    throw Error(CIUIC_PRECONDITION, settings_.who + ": unit " + std::to_string(use.unit) +
                                        " reports its last gradient twice in one step");
  }
  f.units_missing -= f.is_reported[place] ? 0 : 1;
  f.is_reported[place] = true;
  if (sums_each_time(f) && f.units_missing == 0) {
    f.is_complete = (use.flags & CIUIC_USE_LAST_GRAD) != 0;
    start(block, stream);
  }
}

/// Starts the buckets that are summed once, as far as they are complete.
void Gradients::submit_in_order(const ciuic_stream* stream) {
  for (; submitted_ < filled_.size(); ++submitted_) {
    if (is_trained(submitted_) && !sums_each_time(filled_[submitted_])) {
      if (filled_[submitted_].units_missing > 0) {
        return;
      }
      filled_[submitted_].is_complete = true;
      start(submitted_, stream);
    }
  }
}

void Gradients::flush(const ciuic_stream* stream) {
  for (size_t b = 0; b < filled_.size(); ++b) {
    Filled& f = filled_[b];
    if (!is_trained(b)) {
      continue;
    }
    if (!sums_each_time(f)) {
      f.units_missing = 0;
      continue;
    }
    if (f.lent.size() > 0) {  // a micro-batch in which not all of its units were used
      start(b, stream);
    } else if (!f.is_started) {
      ops_.fill(f.own, 0, stream);
    }
  }
  submit_in_order(stream);
  is_flushed_ = true;
  for (size_t b = 0; b < filled_.size(); ++b) {
    if (is_trained(b) && has_second(b)) {
      land_all(stream);
      follow(b, stream);
    }
  }
}

void Gradients::finish(const ciuic_stream* stream) {
  if (!is_flushed_) {
    throw Error(CIUIC_PRECONDITION,
                settings_.who + ": gradients are asked for before end_backward");
  }
  if (is_finished_) {
    return;
  }
  land_all(stream);
  for (size_t b = 0; b < filled_.size(); ++b) {
    finish_second(b, stream);
  }
  sum_second_groups(stream);
  is_finished_ = true;
}

void Gradients::zero_unwritten(size_t block, const ciuic_stream* stream) {
  Filled& f = filled_[block];
  if (f.is_cut && f.lent.size() == 0 && layout_.blocks()[block].bucket.elements > 0) {
    take_whole(block);
  }
  for (const uint64_t id : layout_.blocks()[block].bucket.params) {
    if (!std::exchange(params_[id].is_written, true)) {
      ops_.fill(flat(id, slots_.is_tree ? f.stack.top(f.whole) : f.whole), 0, stream);
    }
  }
}

/// Completes the slots up to number `before`; those without gradients count as zeros.
void Gradients::close_slots(size_t block, uint32_t before, const ciuic_stream* stream) {
  Filled& f = filled_[block];
  if (before < f.stack.open() || before > slots_.micro_batches) {
    throw Error(CIUIC_PRECONDITION, settings_.who + ": a gradient of micro-batch " +
                                        std::to_string(before) + " comes after micro-batch " +
                                        std::to_string(f.stack.open()) + " of " +
                                        std::to_string(slots_.micro_batches) +
                                        "; any_world takes them one after the other");
  }
  while (f.stack.open() < before) {
    zero_unwritten(block, stream);
    f.stack.close(host_, ops_, f.whole, slots_.micro_batches, stream);
    for (const uint64_t id : layout_.blocks()[block].bucket.params) {
      params_[id] = {};
    }
  }
}

bool Gradients::brought_non_finite(uint64_t root, const ciuic_stream* stream) const {
  return names_bad_rank_ && ops_.read<2>(blame_[root], stream)[1] > 0;
}

void Gradients::rollback(int64_t timeout_ns) {
  const Settling settling(host_, timeout_ns);
  while (!flights_.empty()) {
    settling.wait(flights_.front().pending);
    pool_.give_back(std::move(flights_.front().pooled));
    flights_.pop_front();
  }
  bytes_in_flight_ = 0;
  for (Filled& f : filled_) {
    settling.wait(f.second);
    f.second_memory = Buffer();
    if (f.is_cut) {
      give_back_whole(f);
    }
  }
  begin_step({});
}

}  // namespace ciuic::plugins::stages
