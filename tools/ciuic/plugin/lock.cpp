// SPDX-License-Identifier: MIT
//
// ciuic plugin lock: writes the lock of a run's plugins, or of all on the search path. Only what
// goes through the whole pipeline is locked.
#include <cerrno>
#include <cstring>
#include <iostream>
#include <set>

#include "core/config/run_config.h"
#include "core/log/visible.h"
#include "core/plugin/kind.h"
#include "core/plugin/lock_file.h"
#include "core/plugin/open_file.h"
#include "core/train/run_plan.h"
#include "tools/ciuic/plugin/actions.h"
#include "tools/ciuic/plugin/search_options.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
using core::ExitCode;
using core::Failure;

/// A lock, and what is in it already.
class Collected {
 public:
  void add(const core::FoundPlugin& found) {
    const core::DescriptorInfo& d = *found.descriptor;
    const std::string kind(core::kind_name(d.kind));
    if (!seen_.insert(kind + "." + d.name).second) {
      return;
    }
    lock_.add({kind, d.name, d.version,
               std::to_string(d.abi_major) + "." + std::to_string(d.abi_minor), found.file->sha256,
               found.path, found.file->bundle == found.file->sha256 ? "" : found.file->bundle});
    // A library is refused unless all its plugins are locked.
    for (const auto& other : found.file->plugins) {
      add({other, found.path, false, found.file});
    }
  }
  [[nodiscard]] const core::LockFile& lock() const { return lock_; }

 private:
  core::LockFile lock_;
  std::set<std::string> seen_;
};

Collected of_everything(const core::Catalog& catalog) {
  Collected collected;
  const core::Listing all = catalog.list();
  for (const core::FoundPlugin& found : all.plugins) {
    if (!found.shadowed) {
      collected.add(found);
    }
  }
  for (const core::RefusedFile& refused : all.refused) {
    std::cerr << "left out " << core::visible(refused.path) << ": " << core::visible(refused.reason)
              << "\n";
  }
  return collected;
}

/// The plugins that the file chooses; and all that could open its model, if it names one.
Collected of_run(const core::RunConfig& config) {
  core::PluginsSection section = config.plugins;
  section.lock.clear();
  const core::Catalog catalog = core::catalog_of(section);
  std::vector<std::pair<uint32_t, std::string>> wanted;
  for (const auto& [kind, name] : core::chosen_plugins(config)) {
    if (name != "auto") {
      wanted.emplace_back(*core::kind_of(kind), name);
    }
  }
  if (config.communicator.is_auto()) {
    for (const std::string& name : core::communicators_of_auto(catalog)) {
      wanted.emplace_back(CIUIC_KIND_COMMUNICATOR, name);
    }
  }
  catalog.prepare(wanted);
  Collected collected;
  for (const auto& [kind, name] : wanted) {
    collected.add(catalog.find(kind, name));
  }
  if (!config.model.from.empty()) {
    for (const core::FoundPlugin& found : catalog.all_of(CIUIC_KIND_CHECKPOINT)) {
      collected.add(found);
    }
  }
  return collected;
}

}  // namespace

int plugin_lock(const Arguments& arguments) {
  CommandLine line("plugin lock", "ciuic plugin lock [FILE.toml] [-o ciuic.lock]",
                   "Writes the lock of the plugins that FILE.toml chooses, or of all on the search "
                   "path: name, version,\nABI and sha256 of each, with "
                   "what it brings along. plugins.lock = \"ciuic.lock\" in "
                   "a run file then refuses every other content.",
                   "  ciuic plugin lock configs/quickstart.toml -o ciuic.lock\n"
                   "  ciuic plugin lock --path /opt/site/plugins -o /opt/site/ciuic.lock\n");
  add_search_options(line);
  line.options().add_options()(
      "output,o", po::value<std::string>()->value_name("FILE"),
      "Where to write; by default the file's plugins.lock, else ciuic.lock")(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "Overrides one key of the file; may be given often");
  line.positional("file", 1);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  std::string output = get(*values, "output");
  Collected collected;
  if (const std::string file = get(*values, "file"); !file.empty()) {
    const core::Loaded loaded =
        core::load_config(file, get_all(*values, "set"), core::model_fields());
    if (!loaded.ok()) {
      throw core::configuration_failure(loaded.problems);
    }
    collected = of_run(loaded.config);
    output = output.empty() ? loaded.config.plugins.lock : output;
  } else {
    collected = of_everything(catalog_of(*values, line));
  }
  output = output.empty() ? "ciuic.lock" : output;
  if (collected.lock().plugins().empty()) {
    throw Failure(ExitCode::Plugin, "there is no plugin to lock", "see ciuic plugin list");
  }
  if (!core::replace_text(output, collected.lock().text())) {
    throw Failure(ExitCode::Usage, std::string("the lock cannot be written: ") + strerror(errno),
                  "", {{"file", output}});
  }
  std::cout << output << ": " << collected.lock().plugins().size() << " plugins\n";
  return 0;
}

}  // namespace ciuic::tools
