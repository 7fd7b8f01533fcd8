// SPDX-License-Identifier: MIT
//
// A crash with a name: on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT the rank writes one line that
// says which plugin, function and call the thread was inside of, and the library of the program
// counter. Then the signal takes its default course. Nothing is recovered. A plugin that installs
// handlers of its own takes this away.
#pragma once

namespace ciuic::core {

/// Installs the handlers, and gives the calling thread a signal stack, so that a stack overflow has
/// a name too. Once, from the control thread.
void install_crash_handler();

/// For a rank of our launcher, which sends SIGQUIT before it kills a rank that does not end by
/// itself: the rank writes what its threads are inside of, and dies as if killed.
void install_end_handler();

}  // namespace ciuic::core
