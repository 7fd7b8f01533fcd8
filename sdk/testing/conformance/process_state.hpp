// SPDX-License-Identifier: MIT
//
// What belongs to the process and not to a plugin: looked at before and after a call, and compared.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace ciuic::testing {

/// Settings that a library must leave as they are.
struct ProcessSettings {
  std::string signal_handlers;  // of all signals: handler, flags, mask
  std::string signal_mask;      // of this thread
  std::string floating_point;   // rounding, flush to zero, trapping
  std::string locale;
  std::string working_directory;
  std::string file_mask;
  std::string environment;
  std::string standard_files;   // what 0, 1 and 2 point at
  std::string open_mp_threads;  // empty: no OpenMP runtime is mapped
  std::string random_numbers;   // state of rand() and random()
};

ProcessSettings process_settings();

/// "the signal handlers (before: ..., after: ...)"; empty: nothing changed.
std::string difference(const ProcessSettings& before, const ProcessSettings& after);

/// Settings that changed when the library under test was first mapped, as difference() tells them.
/// Written by the runner: a test's own process has it mapped already.
std::string& changed_by_mapping();

/// Things that a process has so many of.
struct ProcessResources {
  size_t threads = 0;
  std::vector<std::string> open_files;  // what /proc/self/fd points at
};

ProcessResources process_resources();

/// Bytes in use, from malloc's own count; 0 under sanitizers. Allocates nothing itself.
size_t heap_bytes();

/// From now on the process may map so many bytes more, so that an absurd option value ends in a
/// failed allocation and not in the machine's memory. Does nothing under sanitizers.
void limit_memory(size_t more_bytes);

/// Of the process, in memory.
size_t resident_bytes();

/// Threads and files that are there after and were not before. A thread that has been joined may
/// take a moment to leave /proc: waits up to a second for it.
std::string left_behind(const ProcessResources& before);

}  // namespace ciuic::testing
