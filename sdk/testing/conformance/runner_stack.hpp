// SPDX-License-Identifier: MIT
//
// Which of the plugin's functions was running when a test crashed or hung? The test's process walks
// its stacks in a signal handler, and leaves the answer in memory that it shares with its parent.
// So no call needs to be recorded, and a hang of any thread is seen.
#pragma once

#include <string>
#include <sys/types.h>

#include <ciuic/abi/plugin.h>

namespace ciuic::testing {

/// Before fork, in the parent: makes the shared memory and empties it.
void prepare_stack_watch();

/// In the child: installs the handlers (not under a sanitizer, which has its own).
void watch_stack();

/// In any process, after the library was mapped: whose functions are looked for. The descriptor's
/// own functions and those of its table; `path` is read for the names of others.
void name_functions_of(const ciuic_descriptor& descriptor, const std::string& path);

/// In the parent: makes every thread of the child write what it is in; waits a moment.
void ask_for_stack(pid_t child);

/// In the parent, after the child's end. Empty: unknown, or not in the plugin.
std::string last_call();

}  // namespace ciuic::testing
