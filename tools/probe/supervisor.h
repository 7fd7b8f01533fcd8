// SPDX-License-Identifier: MIT
//
// Plugins' code runs in a child of ciuic-probe, never in the process that ciuic started: this one
// runs none of it, adopts whatever the child starts and abandons (a group or a session of its own
// does not help), and leaves nothing of it behind: not when the child ends, not when ciuic asks
// (SIGTERM), and not when ciuic itself is gone.
#pragma once

namespace ciuic::tools {

/// Runs `work` in a child and ends this process as the child ended: its exit code or its signal.
[[noreturn]] void supervise(int (*work)());

}  // namespace ciuic::tools
