// SPDX-License-Identifier: MIT
#include "advice.hpp"

#include <ciuic/testing/conformance.hpp>

#include "elf_file.hpp"

namespace ciuic::testing {
namespace {

std::vector<std::string> advice_on(const ElfFile& file) {
  std::vector<std::string> out;
  for (const std::string& path : file.run_paths()) {
    if (path.rfind("$ORIGIN", 0) != 0) {
      out.push_back("its run path is " + path +
                    ": right in a build folder, not in what others install; link with a run path "
                    "relative to $ORIGIN, or none");
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> advice_on(const std::string& path) {
  try {
    return advice_on(ElfFile(path));
  } catch (const CheckFailed&) {
    return {};
  }
}

}  // namespace ciuic::testing
