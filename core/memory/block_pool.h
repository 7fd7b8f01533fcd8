// SPDX-License-Identifier: MIT
//
// Blocks of any size out of one growing region, which keeps what it once got: a step that allocates
// what the step before did takes nothing from the system. Free blocks stand in lists by size class,
// neighbours are joined at once, and finding one takes constant time (two-level segregated fit:
// Masmano, Ripoll, Crespo, Real, ECRTS 2004).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/memory/growing_region.h"

namespace ciuic::core {

class BlockPool {
 public:
  /// What the pool has done and holds, headers included in bytes.
  struct Counts {
    int64_t allocations = 0, frees = 0;
    int64_t allocated_bytes = 0;  // of all allocations together
    int64_t growths = 0;          // times that memory came from the system
    int64_t live_bytes = 0, peak_live_bytes = 0;
    int64_t held_bytes = 0;  // from the system; never given back
  };

  static constexpr size_t kAlignment = 64;

  /// At most `bytes` in all.
  explicit BlockPool(size_t bytes) : region_(bytes) {}

  /// Aligned to kAlignment; nullptr where the system has no memory left. Thread-safe.
  void* allocate(size_t bytes);
  /// `data` is one that allocate gave, or nullptr.
  void release(void* data);
  [[nodiscard]] Counts counts() const;

 private:
  struct Block;
  static constexpr int kParts = 16;   // classes between two powers of two
  static constexpr int kPowers = 48;  // of kAlignment
  struct SizeClass {
    int power, part;
  };
  static SizeClass class_of(size_t units);
  static SizeClass class_that_fits(size_t units);

  Block* take_free(size_t size);
  Block* grow(size_t size);
  void split(Block* block, size_t size);
  Block* joined(Block* left, Block* right);
  void insert(Block* block);
  void remove(Block* block);
  [[nodiscard]] Block* next_of(Block* block) const;

  mutable std::mutex mutex_;
  GrowingRegion region_;
  Block* last_ = nullptr;  // by address
  uint64_t powers_ = 0;    // which have a free block
  std::array<uint32_t, kPowers> parts_{};
  std::array<std::array<Block*, kParts>, kPowers> lists_{};
  Counts counts_;
};

}  // namespace ciuic::core
