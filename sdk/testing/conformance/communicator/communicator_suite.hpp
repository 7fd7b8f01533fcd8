// SPDX-License-Identifier: MIT
//
// The tests of the communicator kind, a table per file.
#pragma once

#include "../suites.h"

namespace ciuic::testing::communicator {

TestTable capability_tests();
TestTable reduction_tests();
TestTable movement_tests();
TestTable send_receive_tests();
TestTable async_tests();
TestTable callback_tests();
TestTable failure_tests();
TestTable service_tests();
TestTable abort_tests();
TestTable split_tests();
TestTable life_tests();
TestTable memory_tests();
TestTable long_tests();  // level 4

}  // namespace ciuic::testing::communicator
