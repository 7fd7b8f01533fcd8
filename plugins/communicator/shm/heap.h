// SPDX-License-Identifier: MIT
//
// Memory that the peers see: what memory_alloc gives out, each piece a shared file of its own, and the
// peers' pieces, mapped here when an operation first names one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "layout.h"
#include "shared_file.h"

namespace ciuic::plugins::shm {

/// Of one process: a group and all that was split off it share one. Any thread.
class Heap {
 public:
  Heap();

  /// Zeroed, on a page. Throws EXHAUSTED.
  [[nodiscard]] void* alloc(size_t bytes);
  /// False: it is none of alloc's. No operation uses it any more.
  bool free(void* memory);

  /// Where [data, data + bytes) lies, for the peers; segment 0 when they cannot see it.
  [[nodiscard]] Address find(const char* data, int64_t bytes) const;
  /// A peer's memory in this process. Throws UNAVAILABLE.
  [[nodiscard]] char* peer_memory(const Address& address);

 private:
  void forget_freed();

  mutable std::mutex mutex_;
  const uint64_t salt_;
  uint64_t num_allocs_ = 0;
  std::map<const char*, SharedFile> own_;                     // by first usable byte
  std::map<std::pair<int32_t, uint64_t>, SharedFile> peers_;  // by process and segment
};

}  // namespace ciuic::plugins::shm
