// SPDX-License-Identifier: MIT
//
// The table of level 1.
#include "load_tests.hpp"

#include "../suites.h"

namespace ciuic::testing {

TestTable load_tests() {
  return {
      {"any.load.query_is_pure", 1, 0, 30,
       "query allocates nothing, starts nothing, and shows the same descriptors each time",
       query_is_pure},
      {"any.load.other_majors", 1, 0, 20, "query is NULL for an ABI major that does not exist",
       query_refuses_other_majors},
      {"any.load.index_past_the_end", 1, 0, 20,
       "query is NULL past the last plugin, and names differ within a kind", query_ends},
      {"any.load.changes_nothing", 1, 0, 60,
       "mapping the library prints nothing and leaves signals, locale, environment and the rest "
       "alone",
       loading_changes_nothing},
      {"any.load.two_copies", 1, 0, 60,
       "a second copy of the library, as after a hot swap, has descriptors of its own",
       two_copies_are_apart},
      {"any.load.unloads", 1, 0, 60, "a RELOADABLE library really leaves memory, 20 times over",
       reloadable_unloads},
      {"any.load.process_exits", 1, 0, 60, "a process that has it mapped ends in good order",
       process_exits},
  };
}

}  // namespace ciuic::testing
