// SPDX-License-Identifier: MIT
//
// The memory of a group as one of its ranks uses it. Ranks advance in stages, numbered through all
// operations: a stage writes only what no rank reads in the same stage, and reads what was written
// one stage before. So before stage g all ranks must have finished stage g - 1; a stage that reads
// nothing may begin one stage earlier, as there are three slots of each kind.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <ciuic/error.hpp>

#include "layout.h"
#include "shared_file.h"

namespace ciuic::plugins::shm {

class Board {
 public:
  static size_t bytes_for(int world);
  /// `memory` is of that size.
  Board(SharedFile memory, int world, int rank);

  [[nodiscard]] int world() const { return world_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] RankState& state(int r) const { return states_[r]; }
  [[nodiscard]] Header& header(int r, uint64_t number) const;
  [[nodiscard]] HeaderPart* header_parts(int r, uint64_t number) const;
  [[nodiscard]] char* in_slot(int r, uint64_t stage) const {
    return slot(in_slots_, kSlotBytes, r, stage);
  }
  [[nodiscard]] char* sum_slot(int r, uint64_t stage) const {
    return slot(sum_slots_, sum_slot_bytes_, r, stage);
  }
  [[nodiscard]] Channel& channel(int from, int to) const { return channels_[from * world_ + to]; }
  /// What fits a slot, or less; equal on all ranks.
  [[nodiscard]] int64_t chunk_bytes() const { return chunk_bytes_; }
  void set_chunk_bytes(int64_t bytes) { chunk_bytes_ = bytes; }

  /// Stages that all ranks have finished.
  [[nodiscard]] uint64_t finished_by_all() const;
  /// This rank has finished so many; wakes the others if it was the last.
  void finish_stages(uint64_t count) const;

  /// Rings so that a rank looks again at what changed.
  void ring(int r) const;
  void ring_all() const;
  [[nodiscard]] uint32_t bell() const { return states_[rank_].bell.load(); }
  /// Sleeps until the bell is no longer `seen`, at most so long.
  void sleep(uint32_t seen, std::chrono::nanoseconds limit) const;

  /// Why this rank has failed, for the others; the first word counts.
  void say_failed(const Error& error) const;
  /// Of another rank. Only when its life is Failed.
  [[nodiscard]] Error last_words(int r) const;

 private:
  static char* slot(char* slots, int64_t bytes, int r, uint64_t stage) {
    return slots + (int64_t{r} * kNumSlots + static_cast<int64_t>(stage % kNumSlots)) * bytes;
  }

  SharedFile memory_;
  int world_, rank_;
  int64_t chunk_bytes_ = kCachedChunkBytes;
  int64_t sum_slot_bytes_;
  RankState* states_;
  char* headers_;
  char* in_slots_;
  char* sum_slots_;
  Channel* channels_;
};

}  // namespace ciuic::plugins::shm
