// SPDX-License-Identifier: MIT
#include "sharding_tables.h"

namespace ciuic::testing {

TestTable sharding_tests() {
  TestTable all;
  for (const TestTable& table :
       {sharding_plan_tests(), sharding_training_tests(), sharding_reduction_tests(),
        sharding_binding_tests(), sharding_norm_tests(), sharding_update_tests(),
        sharding_state_tests(), sharding_memory_tests(), sharding_failure_tests(),
        sharding_order_tests()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

}  // namespace ciuic::testing
