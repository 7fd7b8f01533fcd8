// SPDX-License-Identifier: MIT
//
// Level 1: the library is mapped and asked; nothing is created.
#pragma once

#include <ciuic/testing/conformance.hpp>

namespace ciuic::testing {

// query_tests.cpp
void query_is_pure(const TestContext&);
void query_refuses_other_majors(const TestContext&);
void query_ends(const TestContext&);

// mapping_tests.cpp
void loading_changes_nothing(const TestContext&);
void two_copies_are_apart(const TestContext&);
void reloadable_unloads(const TestContext&);
void process_exits(const TestContext&);

}  // namespace ciuic::testing
