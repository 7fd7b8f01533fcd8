// SPDX-License-Identifier: MIT
//
// What the two sides of the skew test agree on beside the ABI. Both are compiled against a copy of
// the headers whose version and members the test has changed; CIUIC_DOCTORED marks the newer one.
#pragma once

#include <cstdint>

// How many members of each kind a side saw, printed by the host as the test's evidence.
struct SkewCounts {
  uint64_t events;
  uint64_t extras;       // events whose appended member was there
  uint64_t annotations;  // calls of the appended slot
  uint64_t host_clock;   // 1: the plugin found the appended host function
  uint64_t service;      // 1: the plugin found the new service
};
