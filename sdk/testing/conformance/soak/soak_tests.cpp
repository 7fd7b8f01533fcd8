// SPDX-License-Identifier: MIT
//
// The table of level 4 that holds for every kind. --soak-seconds says how long each goes on.
#include "soak_tests.hpp"

#include "../suites.h"

namespace ciuic::testing {

TestTable soak_tests() {
  return {
      {"any.soak.swap", 4, 0, 60,
       "swapped against a second copy of itself in the middle of a run: the same results",
       swaps_with_itself},
      {"any.soak.lives", 4, 0, 60, "life after life: memory, threads and files stay as they are",
       many_lives_take_no_more},
      {"any.soak.long_life", 4, 0, 60, "one long life: memory, threads and files stay as they are",
       a_long_life_takes_no_more},
  };
}

}  // namespace ciuic::testing
