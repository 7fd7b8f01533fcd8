// SPDX-License-Identifier: MIT
//
// The tests of optimizer plugins, a table per file.
#pragma once

#include "../suites.h"

namespace ciuic::testing {

TestTable optimizer_state_tests();     // state_spec, granule, what carries over
TestTable optimizer_range_tests();     // splits, threads, edges
TestTable optimizer_argument_tests();  // types, lr, scale, decay
TestTable optimizer_matrix_tests();    // parameters of two dimensions
TestTable optimizer_seed_tests();      // rounding by chance
TestTable optimizer_rule_tests();      // published rules

}  // namespace ciuic::testing
