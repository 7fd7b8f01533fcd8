// SPDX-License-Identifier: MIT
//
// ciuic plugin new KIND NAME [--c] [--to FOLDER].
#include <cerrno>  // program_invocation_name
#include <filesystem>
#include <iostream>

#include "tools/ciuic/arguments.h"
#include "tools/ciuic/plugin/actions.h"
#include "tools/ciuic/scaffold/project.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

CommandLine command_line() {
  CommandLine line(
      "plugin new", "ciuic plugin new KIND NAME [--c] [--to FOLDER]",
      "Makes a project for a plugin of that kind. It builds at once and passes ciuic plugin "
      "check;\n"
      "what it does is the least that its kind may do, and its comments say where yours goes.\n"
      "Kinds: communicator, sharding, optimizer, precision, batch_scheduler, checkpoint, profiler.",
      "  ciuic plugin new communicator my_ring\n"
      "  ciuic plugin new profiler to_file --c --to work/to_file\n");
  line.options().add_options()("c", "In plain C")(
      "to", po::value<std::string>()->value_name("FOLDER"), "Where; default: ./NAME");
  line.positional("kind", 1);
  line.positional("name", 1);
  return line;
}

/// Where find_package(ciuic) finds the SDK of this binary: its prefix, or its build folder.
std::string package_prefix() {
  std::error_code ec;
  const fs::path binary = fs::read_symlink("/proc/self/exe", ec);
  return ec ? "PREFIX" : binary.parent_path().parent_path().string();
}

}  // namespace

int plugin_new(const Arguments& arguments) {
  CommandLine line = command_line();
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  ProjectRequest request;
  request.kind = get(*values, "kind");
  request.name = get(*values, "name");
  request.language = values->count("c") != 0 ? Language::C : Language::Cpp;
  if (request.kind.empty() || request.name.empty()) {
    throw line.usage_failure("plugin new: KIND and NAME are needed");
  }
  const fs::path folder = values->count("to") != 0 ? get(*values, "to") : request.name;
  write_project(request, folder);
  std::cout << "made " << folder.string() << "; next:\n"
            << "  cmake -G Ninja -S " << folder.string() << " -B " << (folder / "build").string()
            << " -DCMAKE_PREFIX_PATH=" << package_prefix() << "\n"
            << "  cmake --build " << (folder / "build").string() << "\n"
            << "  " << program_invocation_name << " plugin check "
            << (folder / "build" / ("lib" + request.name + ".so")).string() << "\n";
  return 0;
}

}  // namespace ciuic::tools
