// SPDX-License-Identifier: MIT
//
// Level 2: what holds for plugins of every kind.
#pragma once

#include <ciuic/testing/conformance.hpp>

namespace ciuic::testing::contract {

// life_tests.cpp
void create_and_destroy_balance(const TestContext&);
void work_balances(const TestContext&);
void structs_are_respected(const TestContext&);
void instances_are_independent(const TestContext&);
void quiesce_and_resume(const TestContext&);
void after_quiesce(const TestContext&);

// option_tests.cpp
void options_at_their_bounds(const TestContext&);
void options_of_any_text(const TestContext&);
void validate_is_pure(const TestContext&);
void live_options_change(const TestContext&);

// fault_tests.cpp
void allocation_fails(const TestContext&);
void a_service_is_missing(const TestContext&);
void a_service_fails(const TestContext&);
void exceptions_stay_inside(const TestContext&);

// state_tests.cpp
void state_round_trips(const TestContext&);
void damaged_state_is_refused(const TestContext&);

// process_tests.cpp
void settings_stay(const TestContext&);
void nothing_is_printed(const TestContext&);

// thread_tests.cpp
void concurrent_calls(const TestContext&);

}  // namespace ciuic::testing::contract
