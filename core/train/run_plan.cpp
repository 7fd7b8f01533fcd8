// SPDX-License-Identifier: MIT
#include "core/train/run_plan.h"

#include <ciuic/error.hpp>

#include "core/config/model_value.h"
#include "core/model/parameter_specs.h"
#include "core/plugin/archive_opener.h"
#include "core/plugin/kind.h"
#include "core/train/archive_model.h"

namespace ciuic::core {
namespace {

/// The model that [model] asks for: a preset or a folder's config.json, with overrides. False when
/// there were problems, which are appended. Throws Failure (Storage) when the folder cannot be read.
bool resolve_model(const RunConfig& config, const Catalog& catalog, Log& log,
                   std::vector<Problem>& problems, ModelConfig& model) {
  const size_t before = problems.size();
  if (!config.model.preset.empty()) {
    try {
      model = preset(config.model.preset);
    } catch (const Error& e) {
      problems.push_back(problem_at(config.where("model.preset"), e.what()));
    }
  } else if (!config.model.from.empty()) {
    model = model_of(*ArchiveOpener(catalog, log).open(config.model.from));
  }
  for (const Entry& entry : config.model.overrides) {
    if (const auto problem = model.set(entry.key, model_value(entry.node))) {
      problems.push_back(problem_at(entry.node.where, *problem));
    }
  }
  return problems.size() == before;
}

void find_plugins(RunPlan& plan, int world, Log& log, std::vector<Problem>& problems) {
  Placement placement;
  placement.world = placement.local_world = world;
  for (const auto& [kind_text, name] : chosen_plugins(plan.config)) {
    const uint32_t kind = *kind_of(kind_text);
    ChosenPlugin chosen{plan.catalog.find(kind, name), {}};
    const std::string table = kind_text + "." + name;
    const Where where =
        plan.config.where(kind == CIUIC_KIND_PROFILER ? "profiler.plugins" : kind_text + ".plugin");
    PluginOptions::Fallbacks fallbacks;
    if (kind == CIUIC_KIND_COMMUNICATOR) {
      fallbacks.emplace_back("timeout", Node{format_duration(plan.config.communicator.timeout),
                                             plan.config.where("communicator.timeout"), ""});
    }
    const size_t before = problems.size();
    chosen.options =
        PluginOptions::from(plan.config.plugin_table(kind_text, name),
                            chosen.found.descriptor->options, table, where, problems, fallbacks);
    if (problems.size() == before) {
      if (std::string refused = validate(chosen.found, log, chosen.options, placement);
          !refused.empty()) {
        problems.push_back(problem_at(where, table + ": " + refused));
      }
    }
    for (const Problem& warning : chosen.options.warnings()) {
      plan.warnings.push_back(format(warning));
    }
    plan.parts.plugin_tables[table] = chosen.options.toml_entries();
    if (kind == CIUIC_KIND_PROFILER) {
      plan.profilers.push_back(std::move(chosen));
    } else {
      plan.plugins.emplace(kind, std::move(chosen));
    }
  }
}

/// A problem names its field ("model.hidden_size: ..."): if that was overridden, it is said there.
Where place_of(const std::string& problem, const RunConfig& config, const Where& otherwise) {
  for (const Entry& entry : config.model.overrides) {
    if (problem.find(entry.key) != std::string::npos) {
      return entry.node.where;
    }
  }
  return otherwise;
}

void check_model(const RunPlan& plan, std::vector<Problem>& problems) {
  const RunConfig& config = plan.config;
  const Where where = config.where(config.model.from.empty() ? "model.preset" : "model.from");
  for (const std::string& problem : core::problems(plan.model)) {
    problems.push_back(problem_at(place_of(problem, config, where), problem));
  }
  if (config.data.tokenizer == "bytes" && plan.model.vocab_size < 259) {
    problems.push_back(
        problem_at(config.where("model.vocab_size"),
                   "model.vocab_size: got " + std::to_string(plan.model.vocab_size) +
                       ", expected at least 259 for data.tokenizer = \"bytes\" (256 bytes, "
                       "bos, eos, pad)"));
  }
  const std::string& tag = config.checkpoint.tag;
  if (tag.find('/') != std::string::npos || tag == "." || tag == ".." || tag == "latest" ||
      tag.starts_with("step-") || tag.starts_with("abandoned-")) {
    problems.push_back(
        problem_at(config.where("checkpoint.tag"),
                   "checkpoint.tag: got \"" + tag +
                       "\", expected one name of its own, without /, that is none of "
                       "latest, step-..., abandoned-..."));
  }
  if (config.validation.every.unit == Interval::Unit::Time) {
    problems.push_back(
        problem_at(config.where("validation.every"),
                   "validation.every: got a duration, expected steps (\"50 steps\"), epochs or "
                   "\"never\": when a run validates must not depend on a clock"));
  }
  if (config.data.sequence_tokens > plan.model.max_position_embeddings) {
    problems.push_back(problem_at(config.where("data.sequence_tokens"),
                                  "data.sequence_tokens: got " +
                                      std::to_string(config.data.sequence_tokens) +
                                      ", expected at most the model's max_position_embeddings = " +
                                      std::to_string(plan.model.max_position_embeddings)));
  }
}

/// A model's fields as the resolved file writes them; what stands for itself in [model] is `preset`
/// or `from`.
TomlEntries model_entries(const ModelConfig& model) {
  const nlohmann::json json = model.to_json();
  TomlEntries entries;
  for (const ModelConfig::Field& field : ModelConfig::fields()) {
    const auto found = json.find(std::string(field.name));
    if (found == json.end()) {
      continue;
    }
    entries.emplace_back(std::string(field.name), found->is_null() ? "\"none\"" : found->dump());
  }
  return entries;
}

}  // namespace

TomlEntries RunPlan::numerics() const {
  TomlEntries all = numeric_settings(config);
  const auto add = [&all](const ChosenPlugin& chosen) {
    for (auto& entry : chosen.options.numeric_settings()) {
      all.push_back(entry);
    }
  };
  for (const auto& [kind, chosen] : plugins) {
    add(chosen);
  }
  return all;
}

std::vector<ModelField> model_fields() {
  std::vector<ModelField> fields;
  for (const ModelConfig::Field& f : ModelConfig::fields()) {
    fields.push_back({f.name, f.type_name(), f.doc});
  }
  return fields;
}

Failure configuration_failure(const std::vector<Problem>& problems) {
  if (problems.size() == 1) {
    return Failure(ExitCode::Usage, format(problems.front()));
  }
  Failure failure(ExitCode::Usage,
                  std::to_string(problems.size()) + " problems in the configuration",
                  "see ciuic config reference");
  for (const Problem& problem : problems) {
    failure.detail(format(problem));
  }
  return failure;
}

RunPlan make_plan(const PlanRequest& request, Log& log) {
  const std::vector<ModelField> fields = model_fields();
  Loaded loaded = load_config(request.file, request.overrides, fields);
  std::vector<Problem> problems = std::move(loaded.problems);
  RunPlan plan;
  plan.config = std::move(loaded.config);
  const int world = request.world > 0 ? request.world : static_cast<int>(plan.config.run.ranks);
  try {
    plan.catalog = Catalog(Catalog::search_path(plan.config.plugins.path));
    if (resolve_model(plan.config, plan.catalog, log, problems, plan.model)) {
      check_model(plan, problems);
    }
    plan.parts.model_fields = model_entries(plan.model);
    find_plugins(plan, world, log, problems);
  } catch (const Failure&) {
    // A missing plugin or an unreadable model is the answer only when the file itself is right: a wrong key may be why.
    if (problems.empty()) {
      throw;
    }
  }
  if (!problems.empty()) {
    sort_by_place(problems);
    throw configuration_failure(problems);
  }
  return plan;
}

}  // namespace ciuic::core
