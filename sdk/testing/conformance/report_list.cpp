// SPDX-License-Identifier: MIT
//
// --list: the tests, for a person or as a table for the docs.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "report.hpp"
#include "vt_slots.hpp"

namespace ciuic::testing {

void print_tests(const std::vector<const TestCase*>& tests, Format format) {
  size_t width = 0;
  for (const TestCase* t : tests) {
    width = std::max(width, std::strlen(t->id));
  }
  if (format == Format::Markdown) {
    std::printf("| id | level | kind | proves |\n|---|---|---|---|\n");
  }
  for (const TestCase* t : tests) {
    if (format == Format::Markdown) {
      std::printf("| `%s` | %d | %s | %s |\n", t->id, t->level, kind_name(t->kind), t->proves);
    } else {
      std::printf("%-*s  %d  %-15s  %s\n", static_cast<int>(width), t->id, t->level,
                  kind_name(t->kind), t->proves);
    }
  }
}

}  // namespace ciuic::testing
