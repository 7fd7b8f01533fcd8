// SPDX-License-Identifier: MIT
//
// ciuic plugin check: becomes ciuic-check, the conformance kit's program, which stands beside this
// one. The kit is apart so that a plugin's author needs the SDK alone.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>
#include <vector>

#include "tools/ciuic/plugin/actions.h"

namespace ciuic::tools {
namespace {

std::string checker() {
  std::error_code ec;
  const std::filesystem::path binary = std::filesystem::read_symlink("/proc/self/exe", ec);
  return ec ? "ciuic-check" : (binary.parent_path() / "ciuic-check").string();
}

}  // namespace

int plugin_check(const Arguments& arguments) {
  const std::string program = checker();
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  throw core::Failure(
      core::ExitCode::Environment,
      std::string("cannot start the conformance kit: ") + std::strerror(errno),
      "build it (cmake --build build --target ciuic-check), or install it beside ciuic",
      {{"file", program}});
}

}  // namespace ciuic::tools
