// SPDX-License-Identifier: MIT
//
// Which library an address belongs to, for a signal handler: the ranges are written down when
// libraries are mapped, since a handler may not ask the dynamic loader.
#pragma once

#include <cstdint>

namespace ciuic::core {

/// Adds what is mapped now. Called after a library is loaded. Any thread.
void record_modules();

/// The file name without folders, or "unknown". Async-signal-safe.
const char* module_at(uintptr_t address) noexcept;

}  // namespace ciuic::core
