// SPDX-License-Identifier: MIT
//
// The table of level 0.
#include "static_tests.hpp"

#include "../suites.h"

namespace ciuic::testing {

TestTable static_tests() {
  return {
      {"any.static.note", 0, 0, 20, "the ELF note is there and says what the descriptors say",
       note_equals_the_descriptors},
      {"any.static.exports", 0, 0, 20, "ciuic_plugin_query is the only exported symbol",
       exports_one_symbol},
      {"any.static.unique_symbols", 0, 0, 20, "no symbol that the loader shares over all libraries",
       has_no_unique_symbol},
      {"any.static.text_relocations", 0, 0, 20, "code is position independent",
       has_no_text_relocations},
      {"any.static.executable_stack", 0, 0, 20, "the stack need not be executable",
       has_no_executable_stack},
      {"any.static.binds_now", 0, 0, 20, "symbols are bound when it is loaded, not at first use",
       binds_now},
      {"any.static.run_path", 0, 0, 20, "libraries are not searched in the working directory",
       has_no_relative_run_path},
      {"any.static.needed", 0, 0, 20,
       "it needs no library that a host may not have, or must not load",
       needs_known_libraries_only},
      {"any.static.undefined", 0, 0, 20, "each undefined symbol is in a library that it needs",
       finds_every_symbol_in_what_it_needs},
      {"any.static.texts", 0, 0, 20, "name, version and the other texts are there and well formed",
       texts_are_well_formed},
      {"any.static.numbers", 0, 0, 20, "sizes, versions, kind and flags are in range",
       numbers_are_well_formed},
      {"any.static.table", 0, 0, 20, "every required function of the kind is there",
       table_is_complete},
      {"any.static.option_names", 0, 0, 20, "options have snake_case keys, known types and a text",
       options_are_named_and_explained},
      {"any.static.option_defaults", 0, 0, 20, "defaults lie in range, and are among the choices",
       option_defaults_fit},
  };
}

}  // namespace ciuic::testing
