// SPDX-License-Identifier: MIT
#include "core/train/run_line.h"

#include <nlohmann/json.hpp>

#include "core/launch/version.h"
#include "core/model/parameter_specs.h"
#include "core/plugin/kind.h"
#include "core/train/run_plan.h"
#include "core/train/session.h"

namespace ciuic::core {
namespace {

using Json = nlohmann::ordered_json;

/// Names by kind, with what "auto" chose; of profilers a list.
Json plugin_names(const RunConfig& config) {
  Json names;
  for (const auto& [kind, name] : chosen_plugins(config)) {
    if (kind != kind_name(CIUIC_KIND_PROFILER)) {
      names[kind] = name;
    }
  }
  names["profiler"] = config.profilers;
  return names;
}

Json library_versions() {
  Json all = Json::object();
  for (const auto& [name, version] : versions()) {
    all[name] = version;
  }
  return all;
}

}  // namespace

JsonLine run_line(const Session& session, const Attempt& attempt) {
  const RunPlan& plan = session.plan();
  const Json tokenizer{{"name", plan.config.data.tokenizer},
                       {"sha256", session.data().tokenizer_sha256()}};
  JsonLine line("run");
  line.add("attempt", attempt.number)
      .add("name", plan.config.run.name)
      .add_raw("versions", library_versions().dump())
      .add_raw("plugins", plugin_names(plan.config).dump())
      .add("config_hash", plan.hash())
      .add_raw("tokenizer", tokenizer.dump())
      .add("world_size", session.identity().world)
      .add("parameters", count_parameters(plan.model))
      .add("steps", attempt.steps)
      .add("start_step", attempt.start_step);
  return line;
}

}  // namespace ciuic::core
