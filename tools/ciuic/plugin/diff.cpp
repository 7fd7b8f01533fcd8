// SPDX-License-Identifier: MIT
//
// ciuic plugin diff A.so B.so: may B stand where A stood?
#include <iostream>

#include "core/plugin/kind.h"
#include "core/plugin/replacement.h"
#include "tools/ciuic/plugin/actions.h"
#include "tools/ciuic/plugin/search_options.h"

namespace ciuic::tools {
namespace {

std::shared_ptr<const core::LibraryFile> load(const core::Catalog& catalog,
                                              const std::string& what) {
  const auto files = files_named(catalog, what);
  if (files[0]->refusal) {
    throw refusal_of(*files[0]);
  }
  return files[0];
}

}  // namespace

int plugin_diff(const Arguments& arguments) {
  CommandLine line("plugin diff", "ciuic plugin diff A.so B.so",
                   "Says whether B can replace A in a run: same plugins, no option lost, retyped, "
                   "narrowed or newly\nrequired, A's state readable, no feature lost. Exit code 0: "
                   "yes; 1: no, with the reasons; 3: one of\nthem is refused.",
                   "  ciuic plugin diff build-1/libmine.so build-2/libmine.so\n");
  add_search_options(line);
  line.positional("files", 2);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  const std::vector<std::string> files = get_all(*values, "files");
  if (files.size() != 2) {
    throw line.usage_failure("expected two files");
  }
  const core::Catalog catalog = catalog_of(*values, line);
  const auto old_file = load(catalog, files[0]);
  const auto new_file = load(catalog, files[1]);
  const core::Replacement result = core::compare(old_file->plugins, new_file->plugins);
  for (const std::string& note : result.changes) {
    std::cout << "differs: " << note << "\n";
  }
  for (const std::string& reason : result.obstacles) {
    std::cout << "breaks:  " << reason << "\n";
  }
  std::cout << files[1] << (result.obstacles.empty() ? " can replace " : " cannot replace ")
            << files[0] << "\n";
  return result.obstacles.empty() ? 0 : 1;
}

}  // namespace ciuic::tools
