// SPDX-License-Identifier: MIT
#include "tools/ciuic/plugin/search_options.h"

#include <algorithm>

#include "core/config/nearest.h"
#include "core/config/quantity.h"
#include "core/plugin/loading_pipeline.h"

namespace ciuic::tools {

namespace po = boost::program_options;
using core::ExitCode;
using core::Failure;

void add_search_options(CommandLine& line) {
  line.options().add_options()(
      "path", po::value<std::vector<std::string>>()->composing()->value_name("FOLDER"),
      "Looks there first (plugins.path)")("lock", po::value<std::string>()->value_name("FILE"),
                                          "Refuses what that lock does not name (plugins.lock)")(
      "trust", po::value<std::string>()->default_value("owner")->value_name("RULE"),
      "Whose files are loaded: strict, owner or any (plugins.trust)")(
      "probe-timeout", po::value<std::string>()->default_value("20s")->value_name("TIME"),
      "How long a plugin may take to load (plugins.probe_timeout)");
}

core::Catalog catalog_of(const po::variables_map& values, const CommandLine& line) {
  core::LoadRules rules;
  rules.lock = values.count("lock") != 0 ? get(values, "lock") : "";
  const std::string trust = get(values, "trust");
  if (trust != "strict" && trust != "owner" && trust != "any") {
    throw line.usage_failure("--trust: got " + trust + ", expected strict, owner or any");
  }
  rules.trust = trust == "strict" ? core::Trust::Strict
                : trust == "any"  ? core::Trust::Any
                                  : core::Trust::Owner;
  const auto timeout = core::parse_duration(get(values, "probe-timeout"));
  if (!timeout || timeout->count() < 1'000'000) {
    throw line.usage_failure("--probe-timeout: got " + get(values, "probe-timeout") +
                             ", expected a duration such as \"20s\"");
  }
  rules.probe_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(*timeout);
  return core::Catalog(core::Catalog::search_path(folders_of(values, "path")), rules);
}

bool is_file_name(const std::string& what) {
  return what.find('/') != std::string::npos || what.ends_with(".so");
}

std::vector<std::shared_ptr<const core::LibraryFile>> files_named(const core::Catalog& catalog,
                                                                  const std::string& what,
                                                                  bool is_static) {
  const auto look = [&](const std::string& path) {
    return is_static ? catalog.examine(path) : catalog.look(path);
  };
  if (is_file_name(what)) {
    return {look(what)};
  }
  std::vector<std::shared_ptr<const core::LibraryFile>> found;
  std::vector<std::shared_ptr<const core::LibraryFile>> all;  // they own the names below
  std::vector<std::string_view> names;
  for (const std::string& path : catalog.files()) {
    const auto file = all.emplace_back(catalog.examine(path));
    for (size_t i = 0; file->note && i < file->note->plugins.size(); ++i) {
      names.emplace_back(file->note->plugins[i].name);
    }
    const bool offers =
        file->note && std::any_of(file->note->plugins.begin(), file->note->plugins.end(),
                                  [&](const core::NoteRecord& r) { return r.name == what; });
    // A file of that name that is refused is most likely what is asked about.
    if (offers || (!file->note && path.ends_with("/lib" + what + ".so"))) {
      found.push_back(look(path));
    }
  }
  if (found.empty()) {
    throw Failure(ExitCode::Plugin,
                  "no plugin is named \"" + what + "\"" + core::suggestion(what, names),
                  "see ciuic plugin list; a file is named with a slash or .so");
  }
  return found;
}

Failure refusal_of(const core::LibraryFile& file) {
  return Failure(ExitCode::Plugin, "a plugin is refused: " + file.refusal->text(),
                 file.refusal->remedy, {{"file", file.path}});
}

}  // namespace ciuic::tools
