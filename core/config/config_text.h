// SPDX-License-Identifier: MIT
//
// A configuration as text: the file that repeats a run, the same with origins (`config show`), its
// hash, and the reference of all keys. All of it walks the table in core/config/schema.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/config/run_config.h"

namespace ciuic::core {

/// Keys and their values as TOML writes them, in order.
using TomlEntries = std::vector<std::pair<std::string, std::string>>;

/// What only the caller knows: options with the plugins' defaults filled in, and the whole model.
struct ResolvedParts {
  /// By "<kind>.<plugin>", as PluginOptions::toml_entries() gives them. A chosen plugin that is
  /// missing here keeps its table as it was given.
  std::map<std::string, TomlEntries> plugin_tables;
  /// All fields of the model. Empty: those that were given.
  TomlEntries model_fields;
};

/// config.resolved.toml: every key with its value, tables of plugins that are not chosen left out.
/// Loads to an equal configuration.
std::string resolved_toml(const RunConfig& config, const ResolvedParts& parts = {});
/// The same with where each value comes from.
std::string show_toml(const RunConfig& config, const ResolvedParts& parts = {});

/// xxh64 over resolved_toml() without the keys that say where a run happens and not what it is:
/// run.name, run.output, run.rendezvous, plugins.*. 16 hex digits.
std::string config_hash(const RunConfig& config, const ResolvedParts& parts = {});

/// The host's settings that move a loss bit, as (key, text): a checkpoint keeps them, so that
/// resume can list what changed.
TomlEntries numeric_settings(const RunConfig& config);

/// Every key, with type, default, range and text. The TOML form is a valid run file that holds the
/// defaults.
std::string reference_toml(std::span<const ModelField> model_fields = {});
std::string reference_markdown(std::span<const ModelField> model_fields = {});

}  // namespace ciuic::core
