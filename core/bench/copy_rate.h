// SPDX-License-Identifier: MIT
#pragma once

namespace ciuic::core {

/// Bytes a second that memory reads and writes together, when the threads of this process copy memory far
/// larger than the caches. It leaves nothing in the heap.
double measure_copy_rate();

}  // namespace ciuic::core
