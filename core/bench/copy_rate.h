// SPDX-License-Identifier: MIT
#pragma once

namespace ciuic::core {

/// Bytes a second that memory reads and writes together while the threads of this process copy 128 MiB,
/// more than most caches hold. It leaves nothing in the heap.
double measure_copy_rate();

}  // namespace ciuic::core
