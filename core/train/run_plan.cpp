// SPDX-License-Identifier: MIT
#include "core/train/run_plan.h"

#include <bit>

#include <ciuic/error.hpp>
#include <ciuic/view.hpp>

#include "core/config/model_value.h"
#include "core/model/parameter_specs.h"
#include "core/plugin/archive_opener.h"
#include "core/plugin/kind.h"
#include "core/train/archive_model.h"
#include "core/train/parameter_rules.h"
#include "core/train/unused_tables.h"

namespace ciuic::core {
namespace {

/// Whether ranks, experts and the mesh fit together.
void check_parallel(const RunPlan& plan, int world, std::vector<Problem>& problems) {
  const RunConfig& config = plan.config;
  const int64_t expert = config.parallel.expert;
  const auto refuse = [&](const std::string& key, const std::string& text) {
    problems.push_back(problem_at(config.where(key), key + ": " + text));
  };
  const std::string got = "got " + std::to_string(expert) + ", expected a divisor of ";
  if (world % expert != 0) {
    refuse("parallel.expert", got + "the " + std::to_string(world) + " ranks");
  }
  if (expert > 1 && plan.model.n_routed_experts % expert != 0) {
    refuse("parallel.expert",
           got + "model.n_routed_experts (" + std::to_string(plan.model.n_routed_experts) + ")");
  }
  if (expert > 1 && plan.model.num_moe_layers() == 0) {
    refuse("parallel.expert", "got " + std::to_string(expert) +
                                  ", expected 1: no layer of this model has routed experts");
  }
  if (config.run.is_any_world() && expert > 1) {
    refuse("run.reproducible",
           "\"any_world\" needs parallel.expert = 1: tokens of several ranks meet in an expert");
  }
  if (config.run.is_any_world() && !std::has_single_bit(static_cast<unsigned>(world))) {
    refuse("run.reproducible",
           "\"any_world\" needs 1, 2, 4, 8, ... ranks, got " + std::to_string(world));
  }
}

/// The model that [model] asks for: a preset or a folder's config.json, with overrides. False when
/// there were problems, which are appended. Throws Failure (Storage) when the folder cannot be read.
bool resolve_model(RunPlan& plan, Log& log, std::vector<Problem>& problems) {
  const RunConfig& config = plan.config;
  ModelConfig& model = plan.model;
  const size_t before = problems.size();
  if (!config.model.preset.empty()) {
    try {
      model = preset(config.model.preset);
    } catch (const Error& e) {
      problems.push_back(problem_at(config.where("model.preset"), e.what()));
    }
  } else if (!config.model.from.empty()) {
    ArchivedModel found = read_model(*ArchiveOpener(plan.catalog, log).open(config.model.from));
    for (const std::string& note : found.notes) {
      plan.notes.push_back(config.model.from + ": " + note);
    }
    model = std::move(found.config);
  }
  for (const Entry& entry : config.model.overrides) {
    if (const auto problem = model.set(entry.key, model_value(entry.node))) {
      problems.push_back(problem_at(entry.node.where, *problem));
    }
  }
  return problems.size() == before;
}

std::vector<std::pair<uint32_t, std::string>> wanted_plugins(const RunConfig& config) {
  std::vector<std::pair<uint32_t, std::string>> wanted;
  for (const auto& [kind, name] : chosen_plugins(config)) {
    wanted.emplace_back(*kind_of(kind), name);
  }
  return wanted;
}

Where place_of_choice(const RunConfig& config, const std::string& kind) {
  return config.where(kind == kind_name(CIUIC_KIND_PROFILER) ? "profiler.plugins"
                                                             : kind + ".plugin");
}

/// One plugin of the file with its options typed; problems with them are appended.
ChosenPlugin choose(RunPlan& plan, const std::string& kind_text, const std::string& name,
                    std::vector<Problem>& problems) {
  const uint32_t kind = *kind_of(kind_text);
  ChosenPlugin chosen{plan.catalog.find(kind, name), {}, {}};
  const std::string table = kind_text + "." + name;
  PluginOptions::Fallbacks fallbacks;
  if (kind == CIUIC_KIND_COMMUNICATOR) {
    fallbacks.emplace_back("timeout", Node{format_duration(plan.config.communicator.timeout),
                                           plan.config.where("communicator.timeout"), ""});
  }
  chosen.options = PluginOptions::from(
      plan.config.plugin_table(kind_text, name), chosen.found.descriptor->options, table,
      place_of_choice(plan.config, kind_text), problems, fallbacks);
  for (const Problem& warning : chosen.options.warnings()) {
    plan.warnings.push_back(format(warning));
  }
  plan.parts.plugin_tables[table] = chosen.options.toml_entries();
  return chosen;
}

/// What the plugins themselves have against options that are right one by one.
void validate_plugins(const RunPlan& plan, const std::vector<const ChosenPlugin*>& plugins,
                      int world, std::vector<Problem>& problems) {
  Placement placement;
  placement.world = placement.local_world = world;
  std::vector<std::pair<const FoundPlugin*, const PluginOptions*>> calls;
  for (const ChosenPlugin* chosen : plugins) {
    calls.emplace_back(&chosen->found, &chosen->options);
  }
  const std::vector<std::string> refused = plan.catalog.validate(calls, placement);
  for (size_t i = 0; i < plugins.size(); ++i) {
    if (!refused[i].empty()) {
      const DescriptorInfo& d = *plugins[i]->found.descriptor;
      const std::string kind_text(kind_name(d.kind));
      problems.push_back(problem_at(place_of_choice(plan.config, kind_text),
                                    kind_text + "." + d.name + ": " + refused[i]));
    }
  }
}

using DecoratorsByKind = std::map<std::string, std::vector<DecoratorSpec>>;

DecoratorsByKind decorators_of(const RunConfig& config, std::vector<Problem>& problems) {
  const DecorateKeys& keys = config.decorate;
  const std::pair<const char*, const DecoratorList*> lists[] = {
      {"batch_scheduler", &keys.batch_scheduler},
      {"communicator", &keys.communicator},
      {"sharding", &keys.sharding},
      {"optimizer", &keys.optimizer},
      {"precision", &keys.precision},
      {"checkpoint", &keys.checkpoint},
      {"profiler", &keys.profiler}};
  DecoratorsByKind all;
  for (const auto& [kind, list] : lists) {
    all[kind] =
        read_decorators(list->list, *kind_of(kind), std::string(kind) + ".decorate", problems);
  }
  return all;
}

/// Candidates of shadows, as (kind, name).
std::vector<std::pair<std::string, std::string>> candidates_of(const DecoratorsByKind& decorators) {
  std::vector<std::pair<std::string, std::string>> candidates;
  for (const auto& [kind, specs] : decorators) {
    for (const DecoratorSpec& spec : specs) {
      const auto* shadow = std::get_if<ShadowSpec>(&spec.what);
      if (shadow != nullptr && !shadow->candidate.empty()) {
        candidates.emplace_back(kind, shadow->candidate);
      }
    }
  }
  return candidates;
}

/// What `auto` stands for.
void choose_communicator_of(RunPlan& plan, const PlanRequest& request, int world) {
  plan.communicator_choice =
      "communicator " + plan.config.communicator.used() + ": named by communicator.plugin";
  if (plan.config.communicator.is_auto()) {
    const int local_world = request.local_world > 0 ? request.local_world : world;
    CommunicatorChoice choice = choose_communicator(plan.catalog, plan.config.run, world,
                                                    local_world, request.refused_communicators);
    plan.config.communicator.chosen = std::move(choice.plugin);
    plan.communicator_choice = std::move(choice.why);
  }
}

/// The options of a plugin that is not used. One that is refused stops no run that does without it.
void check_unused_table(RunPlan& plan, const std::string& kind, const std::string& name,
                        std::vector<Problem>& problems) {
  const Node* table = plan.config.plugin_table(kind, name);
  try {
    const FoundPlugin found = plan.catalog.find(*kind_of(kind), name);
    const PluginOptions options =
        PluginOptions::from(table, found.descriptor->options, kind + "." + name,
                            place_of_choice(plan.config, kind), problems);
    for (const Problem& warning : options.warnings()) {
      plan.warnings.push_back(format(warning));
    }
  } catch (const Failure& refusal) {
    plan.warnings.push_back(format(
        problem_at(table->where, "[" + kind + "." + name + "] is not checked: " + refusal.what())));
  }
}

/// Communicators with a table that "auto" did not choose here, but may on another machine.
std::vector<std::string> unchosen_of_auto(const RunPlan& plan) {
  std::vector<std::string> unchosen;
  if (plan.config.communicator.is_auto()) {
    for (const std::string& name : communicators_of_auto(plan.catalog)) {
      if (name != plan.config.communicator.used() &&
          plan.config.plugin_table("communicator", name) != nullptr) {
        unchosen.push_back(name);
      }
    }
  }
  return unchosen;
}

void find_plugins(RunPlan& plan, int world, std::vector<Problem>& problems) {
  const DecoratorsByKind decorators = decorators_of(plan.config, problems);
  const auto candidates = candidates_of(decorators);
  auto wanted = wanted_plugins(plan.config);
  for (const auto& [kind, name] : candidates) {
    wanted.emplace_back(*kind_of(kind), name);
  }
  const std::vector<std::string> unchosen = unchosen_of_auto(plan);
  for (const std::string& name : unchosen) {
    wanted.emplace_back(CIUIC_KIND_COMMUNICATOR, name);
  }
  plan.catalog.prepare(wanted);
  std::vector<const ChosenPlugin*> sound;
  plan.profilers.reserve(plan.config.profilers.size());
  for (const auto& [kind_text, name] : chosen_plugins(plan.config)) {
    const size_t before = problems.size();
    ChosenPlugin chosen = choose(plan, kind_text, name, problems);
    chosen.decorators = decorators.at(kind_text);
    const uint32_t kind = chosen.found.descriptor->kind;
    const ChosenPlugin& kept = kind == CIUIC_KIND_PROFILER
                                   ? plan.profilers.emplace_back(std::move(chosen))
                                   : plan.plugins.emplace(kind, std::move(chosen)).first->second;
    if (problems.size() == before) {
      sound.push_back(&kept);
    }
  }
  for (const auto& [kind_text, name] : candidates) {
    const size_t before = problems.size();
    ChosenPlugin chosen = choose(plan, kind_text, name, problems);
    const auto kept = plan.candidates.emplace(kind_text + "." + name, std::move(chosen)).first;
    if (problems.size() == before) {
      sound.push_back(&kept->second);
    }
  }
  for (const std::string& name : unchosen) {
    if (plan.candidates.count("communicator." + name) == 0) {  // else it was checked as one
      check_unused_table(plan, "communicator", name, problems);
    }
  }
  validate_plugins(plan, sound, world, problems);
}

/// What the options and features of plugins have to do with the rest of the file.
void check_plugins(const RunPlan& plan, std::span<const ParameterSpec> parameters,
                   std::vector<Problem>& problems) {
  if (!parameters.empty()) {
    for (const auto& [kind, chosen] : plan.plugins) {
      check_name_patterns(chosen.options, parameters, problems);
    }
  }
  if (!plan.config.optimizer.gradient_norms.empty() &&
      !plan.has_feature(CIUIC_KIND_SHARDING, "norm:params")) {
    problems.push_back(problem_at(plan.config.where("optimizer.gradient_norms"),
                                  "optimizer.gradient_norms: sharding \"" + plan.config.sharding +
                                      "\" gives the norm of the whole gradient only (it lacks the "
                                      "feature norm:params)"));
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

/// A JSON value as TOML writes it; null is "none".
std::string toml_value(const nlohmann::json& value) {
  if (!value.is_object()) {
    return value.is_null() ? "\"none\"" : value.dump();
  }
  std::string text = "{";
  for (const auto& [key, member] : value.items()) {
    text += (text.size() > 1 ? ", " : " ") + key + " = " + toml_value(member);
  }
  return text + " }";
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
    entries.emplace_back(std::string(field.name), toml_value(*found));
  }
  return entries;
}

}  // namespace

Catalog catalog_of(const PluginsSection& section) {
  LoadRules rules;
  rules.trust = section.trust == "strict" ? Trust::Strict
                : section.trust == "any"  ? Trust::Any
                                          : Trust::Owner;
  rules.lock = section.lock;
  rules.probe_timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(section.probe_timeout);
  return Catalog(Catalog::search_path(section.path, section.allow_env), rules);
}

bool RunPlan::has_feature(uint32_t kind, std::string_view feature) const {
  const std::vector<std::string>& features = plugin(kind).found.descriptor->features;
  return std::find(features.begin(), features.end(), feature) != features.end();
}

std::chrono::nanoseconds RunPlan::collective_timeout() const {
  for (const ciuic_option& option :
       ArrayView<ciuic_option>(plugin(CIUIC_KIND_COMMUNICATOR).options.array())) {
    if (to_view(option.key) == "timeout" && option.type == CIUIC_TYPE_DURATION) {
      return std::chrono::nanoseconds(option.value.i);
    }
  }
  return config.communicator.timeout;
}

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
  std::vector<ParameterSpec> parameters;  // none where the model has a problem
  try {
    plan.catalog = catalog_of(plan.config.plugins);
    choose_communicator_of(plan, request, world);
    if (resolve_model(plan, log, problems)) {
      check_model(plan, problems);
      check_parallel(plan, world, problems);
      if (core::problems(plan.model).empty()) {
        parameters = parameter_specs(plan.model);
        check_parameter_rules(plan.config, parameters, problems);
      }
    }
    plan.parts.model_fields = model_entries(plan.model);
    find_plugins(plan, world, problems);
    check_plugins(plan, parameters, problems);
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
  for (std::string& warning : unused_tables(plan)) {
    plan.warnings.push_back(std::move(warning));
  }
  return plan;
}

}  // namespace ciuic::core
