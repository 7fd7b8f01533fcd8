// SPDX-License-Identifier: MIT
//
// The worker: the executable that links LibTorch. `ciuic` becomes it when a command needs tensors.
#pragma once

#include <string>

#include "tools/ciuic/arguments.h"

namespace ciuic::tools {

/// ciuic-worker beside this executable. Throws Failure (Environment) when it is not there.
std::string worker_path();

/// Keeps LibTorch's own warnings off a person's terminal; before anything loads it. What the
/// environment says already stays.
void quieten_libtorch();

/// Replaces this process by the worker with these arguments. Throws Failure when that fails.
[[noreturn]] void become_worker(const std::string& command, const Arguments& arguments);

}  // namespace ciuic::tools
