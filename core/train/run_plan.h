// SPDX-License-Identifier: MIT
//
// A run, checked and resolved, before any process or connection: the file's values, the model, the
// plugins found with their options typed. The launcher makes one to refuse what is wrong; every
// rank makes the same one to run it. Also what `ciuic config check` and `show` print.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config_text.h"
#include "core/config/plugin_options.h"
#include "core/config/run_config.h"
#include "core/model/model_config.h"
#include "core/plugin/catalog.h"
#include "core/plugin/decorator/decorator_spec.h"
#include "core/plugin/instance.h"
#include "core/train/communicator_choice.h"

namespace ciuic::core {

struct ChosenPlugin {
  FoundPlugin found;
  PluginOptions options;
  std::vector<DecoratorSpec> decorators;  // outermost first
};

struct RunPlan {
  RunConfig config;
  ModelConfig model;
  Catalog catalog{{}};
  std::map<uint32_t, ChosenPlugin> plugins;  // one of each kind but profiler
  std::vector<ChosenPlugin> profilers;
  std::map<std::string, ChosenPlugin> candidates;  // of shadows, by "<kind>.<plugin>"
  ResolvedParts parts;
  std::vector<std::string> warnings;
  std::vector<std::string> notes;   // of the folder that the model comes from
  std::string communicator_choice;  // which one, and why

  [[nodiscard]] const ChosenPlugin& plugin(uint32_t kind) const { return plugins.at(kind); }
  /// Whether the plugin of this kind says that it can do this.
  [[nodiscard]] bool has_feature(uint32_t kind, std::string_view feature) const;
  /// How long one collective may take: the communicator's own deadline.
  [[nodiscard]] std::chrono::nanoseconds collective_timeout() const;
  /// config.resolved.toml.
  [[nodiscard]] std::string resolved() const { return resolved_toml(config, parts); }
  [[nodiscard]] std::string hash() const { return config_hash(config, parts); }
  /// Everything that moves a loss bit, host and plugins, as (key, text).
  [[nodiscard]] TomlEntries numerics() const;
};

struct PlanRequest {
  std::string file;
  std::vector<std::string> overrides;                           // "a.b=c"
  int world = 0;                                                // 0: run.ranks
  int local_world = 0;                                          // ranks on this machine; 0: all
  std::vector<RefusedCommunicator> refused_communicators = {};  // what "auto" is not to choose
};

/// The plugins that [plugins] lets a run use. Throws Failure (Usage) when its lock is none.
Catalog catalog_of(const PluginsSection& section);

/// Throws Failure: Usage with all problems of the file at once; Plugin when one is missing or
/// refused; Storage when `model.from` cannot be read.
RunPlan make_plan(const PlanRequest& request, Log& log);

/// The fields that [model] may override, for the schema.
std::vector<ModelField> model_fields();

/// One Failure (Usage) for a list of problems.
Failure configuration_failure(const std::vector<Problem>& problems);

}  // namespace ciuic::core
