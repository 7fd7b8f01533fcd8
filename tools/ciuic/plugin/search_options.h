// SPDX-License-Identifier: MIT
//
// Where the actions of `ciuic plugin` look for plugins, and by which rules: what [plugins] says in a
// run file, as options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/plugin/catalog.h"
#include "tools/ciuic/arguments.h"

namespace ciuic::tools {

/// --path, --lock, --trust, --probe-timeout.
void add_search_options(CommandLine& line);
core::Catalog catalog_of(const boost::program_options::variables_map& values,
                         const CommandLine& line);

/// Is this a file's name rather than a plugin's?
bool is_file_name(const std::string& what);

/// The files that `what` names: one by path, or all on the search path that offer a plugin of that
/// name. Throws Failure (Plugin) when there is none.
std::vector<std::shared_ptr<const core::LibraryFile>> files_named(const core::Catalog& catalog,
                                                                  const std::string& what,
                                                                  bool is_static = false);

/// The failure that a refused file stands for: path, step, reason, remedy; exit 3.
core::Failure refusal_of(const core::LibraryFile& file);

}  // namespace ciuic::tools
