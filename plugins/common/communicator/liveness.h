// SPDX-License-Identifier: MIT
//
// Is a peer's process alive? Known for certain when it runs on this machine, in the same process
// namespace.
#pragma once

#include <string>

namespace ciuic::plugins {

/// Identifies this process for the peers: machine, process namespace, pid, start time. One word.
[[nodiscard]] std::string own_identity();

/// "" when the process may well be alive; else what is known: "its process 123 has ended".
[[nodiscard]] std::string death_of(const std::string& identity);

/// Likewise for a process that is stopped (SIGSTOP, a debugger).
[[nodiscard]] std::string stop_of(const std::string& identity);

}  // namespace ciuic::plugins
