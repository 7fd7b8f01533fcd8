// SPDX-License-Identifier: MIT
//
// What this process holds of the machine's memory, in bytes.
#pragma once

#include <cstdint>

namespace ciuic::core {

int64_t resident_bytes();
int64_t peak_resident_bytes();

}  // namespace ciuic::core
