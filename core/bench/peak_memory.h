// SPDX-License-Identifier: MIT
//
// The largest resident set of this process since the last reset (VmHWM).
#pragma once

#include <cstdint>

namespace ciuic::core {

int64_t peak_rss_bytes();
/// From here on the peak is that of what comes. False: the kernel does not let us.
bool reset_peak_rss();

}  // namespace ciuic::core
