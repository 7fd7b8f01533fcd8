// SPDX-License-Identifier: MIT
//
// Counts what tensors take from LibTorch's CPU allocator and give back to it.
#pragma once

#include <cstdint>

namespace ciuic::core {

struct StorageCounts {
  int64_t allocations = 0;
  int64_t allocated_bytes = 0;
  int64_t frees = 0;
};

/// From here to the process's end. A storage that is there already goes uncounted.
void count_storage();
/// Since count_storage; zeros before it.
StorageCounts storage_counts();

}  // namespace ciuic::core
