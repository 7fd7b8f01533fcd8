// SPDX-License-Identifier: MIT
//
// Level 4: swapped while it runs, and running for long.
#pragma once

#include <ciuic/testing/conformance.hpp>

namespace ciuic::testing {

// swap_tests.cpp
void swaps_with_itself(const TestContext&);

// endurance_tests.cpp
void many_lives_take_no_more(const TestContext&);
void a_long_life_takes_no_more(const TestContext&);

}  // namespace ciuic::testing
