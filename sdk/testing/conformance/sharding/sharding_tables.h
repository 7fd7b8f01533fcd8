// SPDX-License-Identifier: MIT
//
// The tests of sharding plugins, a table per file.
#pragma once

#include "../suites.h"

namespace ciuic::testing {

TestTable sharding_plan_tests();       // who holds what
TestTable sharding_training_tests();   // the same numbers as without sharding
TestTable sharding_reduction_tests();  // how gradients are summed
TestTable sharding_binding_tests();    // views, nesting, idle uses, evaluation
TestTable sharding_norm_tests();       // grad_stats
TestTable sharding_update_tests();     // what the optimizer is handed
TestTable sharding_state_tests();      // save, load, other world sizes, export
TestTable sharding_memory_tests();     // bytes
TestTable sharding_failure_tests();    // rollback, errors
TestTable sharding_order_tests();      // calls out of order

}  // namespace ciuic::testing
