// SPDX-License-Identifier: MIT
#include "optimizer_tables.h"

namespace ciuic::testing {

TestTable optimizer_tests() {
  TestTable all;
  for (const TestTable& table :
       {optimizer_state_tests(), optimizer_range_tests(), optimizer_argument_tests(),
        optimizer_matrix_tests(), optimizer_seed_tests(), optimizer_rule_tests()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

}  // namespace ciuic::testing
