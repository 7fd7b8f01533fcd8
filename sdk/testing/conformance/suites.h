// SPDX-License-Identifier: MIT
//
// All tests of the kit, a table per subject. A test exists when its row is in a table here.
#pragma once

#include <vector>

#include <ciuic/testing/conformance.hpp>

namespace ciuic::testing {

using TestTable = std::vector<TestCase>;

TestTable static_tests();        // level 0
TestTable load_tests();          // level 1
TestTable contract_tests();      // level 2
TestTable communicator_tests();  // level 3, and level 4 of the kind
TestTable sharding_tests();
TestTable optimizer_tests();
TestTable precision_tests();
TestTable batch_scheduler_tests();
TestTable checkpoint_tests();
TestTable profiler_tests();
TestTable soak_tests();  // level 4, every kind

}  // namespace ciuic::testing
