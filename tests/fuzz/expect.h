// SPDX-License-Identifier: MIT
//
// What must hold for every input: when it does not, the process ends as after a memory fault, so
// that the fuzzer keeps the input.
#pragma once

#include <cstdio>
#include <cstdlib>

inline void expect(bool holds, const char* otherwise) {
  if (!holds) {
    std::fprintf(stderr, "expectation failed: %s\n", otherwise);
    std::abort();
  }
}
