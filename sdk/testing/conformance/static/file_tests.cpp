// SPDX-License-Identifier: MIT
//
// Hygiene of the library's file: each of these has cost some plugin system days of debugging.
#include <algorithm>

#include "elf_file.hpp"
#include "static_tests.hpp"

namespace ciuic::testing {
namespace {

/// "a, b, c and 12 more".
std::string some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    out += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kShown ? out + " and " + std::to_string(names.size() - kShown) + " more"
                               : out;
}

template <typename Wanted>
std::vector<std::string> defined_symbols(const std::string& path, Wanted wanted) {
  std::vector<std::string> out;
  const ElfFile file(path);
  for (const ElfSymbol& s : file.dynamic_symbols()) {
    if (s.defined && !s.hidden && !s.name.empty() && wanted(s)) {
      out.push_back(s.name);
    }
  }
  return out;
}

}  // namespace

void exports_one_symbol(const TestContext& t) {
  const std::vector<std::string> others = defined_symbols(t.path, [](const ElfSymbol& s) {
    return s.binding != STB_LOCAL && s.name != "ciuic_plugin_query";
  });
  require(others.empty(),
          "the library also exports " + some(others) +
              "; the host or another library may replace them, or be replaced: build with "
              "-fvisibility=hidden and the version script that ciuic_add_plugin uses");
}

void has_no_unique_symbol(const TestContext& t) {
  const std::vector<std::string> unique =
      defined_symbols(t.path, [](const ElfSymbol& s) { return s.binding == STB_GNU_UNIQUE; });
  require(unique.empty(), "symbols of binding GNU_UNIQUE: " + some(unique) +
                              "; they are shared with every other library and pin this one in "
                              "memory: build with -fno-gnu-unique and a version script");
}

void has_no_text_relocations(const TestContext& t) {
  require(!ElfFile(t.path).has_text_relocations(),
          "the library has text relocations: its code must be written to when it is loaded, which "
          "hardened systems forbid; compile every file with -fPIC");
}

void has_no_executable_stack(const TestContext& t) {
  const std::vector<Elf64_Phdr> segments = ElfFile(t.path).segments();
  const auto stack = std::find_if(segments.begin(), segments.end(),
                                  [](const Elf64_Phdr& s) { return s.p_type == PT_GNU_STACK; });
  require(stack != segments.end(),
          "the library does not say that it needs no executable stack (no PT_GNU_STACK), so the "
          "loader makes all stacks of the process executable; link with -z noexecstack");
  require((stack->p_flags & PF_X) == 0,
          "the library asks for an executable stack, so the loader makes all stacks of the process "
          "executable; add .note.GNU-stack to assembler files, or link with -z noexecstack");
}

void binds_now(const TestContext& t) {
  require(
      ElfFile(t.path).binds_now(),
      "symbols are bound lazily: one that is missing is seen at the first call, perhaps in step "
      "10 000; link with -z now");
}

void has_no_relative_run_path(const TestContext& t) {
  const ElfFile file(t.path);
  for (const std::string& path : file.run_paths()) {
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find(':', begin), path.size());
      const std::string part = path.substr(begin, end - begin);
      // CMake pads the run path of a build folder with ':'; that is advice, not a fault.
      require(part.empty() || part[0] == '/' || part.rfind("$ORIGIN", 0) == 0 ||
                  part.rfind("${ORIGIN}", 0) == 0,
              "the run path \"" + path + "\" has a part \"" + part +
                  "\" that depends on the working directory; make it relative to $ORIGIN");
      begin = end + 1;
    }
  }
}

}  // namespace ciuic::testing
