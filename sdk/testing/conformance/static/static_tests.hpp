// SPDX-License-Identifier: MIT
//
// Level 0: what the library's file and its descriptor say. Nothing of the plugin runs but its
// query.
#pragma once

#include <ciuic/testing/conformance.hpp>

namespace ciuic::testing {

// note_tests.cpp
void note_equals_the_descriptors(const TestContext&);

// file_tests.cpp
void exports_one_symbol(const TestContext&);
void has_no_unique_symbol(const TestContext&);
void has_no_text_relocations(const TestContext&);
void has_no_executable_stack(const TestContext&);
void binds_now(const TestContext&);
void has_no_relative_run_path(const TestContext&);

// dependency_tests.cpp
void needs_known_libraries_only(const TestContext&);
void finds_every_symbol_in_what_it_needs(const TestContext&);

// descriptor_tests.cpp
void texts_are_well_formed(const TestContext&);
void numbers_are_well_formed(const TestContext&);
void table_is_complete(const TestContext&);

// option_tests.cpp
void options_are_named_and_explained(const TestContext&);
void option_defaults_fit(const TestContext&);

}  // namespace ciuic::testing
