// SPDX-License-Identifier: MIT
#include "board.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "futex.h"

namespace ciuic::plugins::shm {
namespace {

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t header_bytes(int world) {
  return round_up(sizeof(Header) + static_cast<size_t>(world) * sizeof(HeaderPart), kLine);
}

/// Offsets from the beginning.
struct Plan {
  explicit Plan(int world) {
    const auto w = static_cast<size_t>(world);
    headers = round_up(w * sizeof(RankState), kPage);
    in_slots = headers + round_up(w * 2 * header_bytes(world), kPage);
    sum_slots = in_slots + w * kNumSlots * kSlotBytes;
    sum_slot_bytes = round_up(kSlotBytes / w + kLine, kPage);  // a rank's part
    channels = sum_slots + w * kNumSlots * sum_slot_bytes;
    end = channels + w * w * sizeof(Channel);
  }
  size_t headers, in_slots, sum_slots, sum_slot_bytes, channels, end;
};

}  // namespace

size_t Board::bytes_for(int world) { return Plan(world).end; }

Board::Board(SharedFile memory, int world, int rank)
    : memory_(std::move(memory)), world_(world), rank_(rank) {
  // Zeroed memory is what every object in it begins with.
  const Plan plan(world);
  sum_slot_bytes_ = static_cast<int64_t>(plan.sum_slot_bytes);
  char* at = memory_.data();
  states_ = reinterpret_cast<RankState*>(at);
  headers_ = at + plan.headers;
  in_slots_ = at + plan.in_slots;
  sum_slots_ = at + plan.sum_slots;
  channels_ = reinterpret_cast<Channel*>(at + plan.channels);
}

Header& Board::header(int r, uint64_t number) const {
  const auto place = static_cast<size_t>(r) * 2 + number % 2;
  return *reinterpret_cast<Header*>(headers_ + place * header_bytes(world_));
}

HeaderPart* Board::header_parts(int r, uint64_t number) const {
  return reinterpret_cast<HeaderPart*>(&header(r, number) + 1);
}

uint64_t Board::finished_by_all() const {
  uint64_t least = UINT64_MAX;
  for (int r = 0; r < world_; ++r) {
    least = std::min(least, states_[r].stages.load(std::memory_order_seq_cst));
  }
  return least;
}

void Board::finish_stages(uint64_t count) const {
  states_[rank_].stages.store(count, std::memory_order_seq_cst);
  if (finished_by_all() >= count) {
    ring_all();
  }
}

void Board::ring(int r) const {
  states_[r].bell.fetch_add(1, std::memory_order_seq_cst);
  if (states_[r].sleepers.load(std::memory_order_seq_cst) > 0) {
    futex_wake_all(states_[r].bell);
  }
}

void Board::ring_all() const {
  for (int r = 0; r < world_; ++r) {
    if (r != rank_) {
      ring(r);
    }
  }
}

void Board::sleep(uint32_t seen, std::chrono::nanoseconds limit) const {
  RankState& own = states_[rank_];
  own.sleepers.fetch_add(1, std::memory_order_seq_cst);
  futex_wait(own.bell, seen, std::max(limit, std::chrono::nanoseconds(1000)));
  own.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void Board::say_failed(const Error& error) const {
  RankState& own = states_[rank_];
  uint32_t silent = 0;
  if (!own.has_spoken.compare_exchange_strong(silent, 1)) {
    return;
  }
  own.code = error.code();
  own.culprit = error.peer();
  std::strncpy(own.text, error.what(), kWords - 1);
  own.has_spoken = 2;
  own.life = Life::Failed;
  ring_all();
}

Error Board::last_words(int r) const {
  const RankState& s = states_[r];
  return Error(s.code, std::string(s.text, ::strnlen(s.text, kWords)), s.culprit);
}

}  // namespace ciuic::plugins::shm
