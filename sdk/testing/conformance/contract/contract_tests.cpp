// SPDX-License-Identifier: MIT
//
// The table of level 2.
#include "contract_tests.hpp"

#include "../suites.h"

namespace ciuic::testing {

TestTable contract_tests() {
  using namespace contract;
  return {
      {"any.contract.create_destroy", 2, 0, 60,
       "a thousand creates and destroys leave no status, memory, thread or file",
       create_and_destroy_balance},
      {"any.contract.work_balance", 2, 0, 60,
       "lives with work in them leave no status, memory, thread or file", work_balances},
      {"any.contract.structs", 2, 0, 30,
       "no struct or text is read or written past its end, or after the call",
       structs_are_respected},
      {"any.contract.instances", 2, 0, 30,
       "two instances with other options do not disturb each other", instances_are_independent},
      {"any.contract.quiesce", 2, 0, 60,
       "quiesce twice, resume, and go on as if nothing had been; no thread runs in between",
       quiesce_and_resume},
      {"any.contract.after_quiesce", 2, 0, 20,
       "between quiesce and resume a call is refused as PRECONDITION", after_quiesce},
      {"any.contract.option_bounds", 2, 0, 60,
       "every option at its bounds: works, or is refused by a status", options_at_their_bounds},
      {"any.contract.option_texts", 2, 0, 60,
       "texts of any length and content: work, or are refused by a status", options_of_any_text},
      {"any.contract.validate", 2, 0, 20,
       "validate uses no service and leaves no file, thread or memory", validate_is_pure},
      {"any.contract.live_options", 2, 0, 20,
       "options that may change while it runs do change, others are refused", live_options_change},
      {"any.contract.allocation_failure", 2, 0, 60,
       "memory that runs out at any allocation ends in a status, and in balance", allocation_fails},
      {"any.contract.missing_service", 2, 0, 60,
       "a service that the host lacks ends in a status, or in work without it",
       a_service_is_missing},
      {"any.contract.failing_service", 2, 0, 90,
       "a service that fails at any call ends in a status, and in balance", a_service_fails},
      {"any.contract.exceptions", 2, 0, 60,
       "no exception crosses the boundary, neither in good order nor when the host offers nothing",
       exceptions_stay_inside},
      {"any.contract.state", 2, 0, 30, "state that is saved, loaded and saved again is the same",
       state_round_trips},
      {"any.contract.damaged_state", 2, 0, 60,
       "state that is cut, garbled or incomplete ends in a status, not in a crash; good state "
       "loads afterwards",
       damaged_state_is_refused},
      {"any.contract.process_settings", 2, 0, 60,
       "no call changes signals, rounding, locale, directory, environment, OpenMP or rand()",
       settings_stay},
      {"any.contract.silence", 2, 0, 30, "nothing is written to stdout or stderr",
       nothing_is_printed},
      {"any.contract.concurrency", 2, 0, 60,
       "functions of class Q and A hold under calls from several threads", concurrent_calls},
  };
}

}  // namespace ciuic::testing
