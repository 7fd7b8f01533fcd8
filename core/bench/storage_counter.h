// SPDX-License-Identifier: MIT
//
// Counts what tensors take from LibTorch's CPU allocator and give back to it.
#pragma once

#include "core/plugin/host_context.h"

namespace ciuic::core {

/// From here to the process's end. A storage that is there already goes uncounted.
void count_storage();
/// Since count_storage; zeros before it.
MemoryCounts storage_counts();

}  // namespace ciuic::core
