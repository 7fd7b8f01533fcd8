// SPDX-License-Identifier: MIT
#include "core/config/run_config.h"

#include <algorithm>
#include <array>

#include "core/config/nearest.h"
#include "core/config/schema.h"
#include "core/config/toml_reader.h"

namespace ciuic::core {
namespace {

/// Checks a tree of Nodes against the schema. Each step appends to `problems`; none stops at the
/// first.
class Checker {
 public:
  Checker(const Node& root, const std::string& file, std::span<const ModelField> model_fields,
          Loaded& loaded)
      : root_(root),
        model_fields_(model_fields),
        config_(loaded.config),
        problems_(loaded.problems) {
    config_.file = file;
  }

  void run() {
    for (const Entry& entry : *root_.table()) {
      check_root_entry(entry);
    }
    check_run();
    check_model();
    check_data();
    check_validation();
    check_clip_norm();
    check_not_built();
    fill_derived();
  }

 private:
  // ---- keys, one by one ----

  void check_root_entry(const Entry& entry) {
    const Section* section = find_section(entry.key);
    if (section == nullptr) {
      unknown_table(entry);
    } else if (entry.node.table() == nullptr) {
      problem(entry.node,
              entry.key + ": got " + entry.node.text() + ", expected a table: [" + entry.key + "]");
    } else {
      for (const Entry& inner : *entry.node.table()) {
        check_entry(*section, inner);
      }
    }
  }

  void check_entry(const Section& section, const Entry& entry) {
    const std::string path = std::string(section.name) + "." + entry.key;
    if (const Key* key = find_key(section.name, entry.key)) {
      config_.given[path] = entry.node.where;
      assign(*key, entry.node, config_, problems_);
    } else if (section.name == "model") {
      check_model_field(entry);
    } else if (section.has_plugins && entry.node.table() != nullptr) {
      config_.plugin_tables[path] = entry.node;
    } else {
      problem(entry.node, path + " is no key" + hint_for(section, entry.key));
    }
  }

  void unknown_table(const Entry& entry) {
    std::vector<std::string_view> names;
    for (const Section& section : sections()) {
      names.push_back(section.name);
    }
    std::string hint = suggestion(entry.key, names);
    if (hint.empty()) {
      hint = tables_with(entry.key);
    }
    problem(entry.node,
            entry.key +
                (entry.node.table() != nullptr ? " is no table" : " is no key of the file") + hint);
  }

  std::string hint_for(const Section& section, std::string_view name) const {
    const auto names = key_names(section.name);
    if (std::string hint = suggestion(name, names); !hint.empty()) {
      return hint;
    }
    if (std::string hint = tables_with(name); !hint.empty()) {
      return hint;
    }
    if (section.has_plugins) {
      const std::string kind(section.name);
      return "; options of a plugin stand in a table of its own: [" + kind + ".<plugin>]";
    }
    return "";
  }

  static std::string tables_with(std::string_view name) {
    std::string tables;
    for (const Key& key : keys()) {
      if (key.name == name && key.type != KeyType::Plugin) {
        tables += (tables.empty() ? "" : " or ") + std::string("[") + std::string(key.table) + "]";
      }
    }
    return tables.empty() ? "" : "; it belongs to " + tables;
  }

  // ---- [model] ----

  void check_model_field(const Entry& entry) {
    const std::string path = "model." + entry.key;
    config_.given[path] = entry.node.where;
    if (model_fields_.empty()) {
      config_.model.overrides.push_back(entry);
      return;
    }
    std::vector<std::string_view> names = key_names("model");
    for (const ModelField& field : model_fields_) {
      if (field.name == entry.key) {
        return check_model_value(field, entry);
      }
      names.push_back(field.name);
    }
    std::string hint = suggestion(entry.key, names);
    problem(entry.node, path + " is no key" + (hint.empty() ? tables_with(entry.key) : hint));
  }

  void check_model_value(const ModelField& field, const Entry& entry) {
    const Node& node = entry.node;
    const bool is_none = node.string() != nullptr && *node.string() == "none";
    const bool fits =
        (field.type == "boolean" && node.boolean() != nullptr) ||
        (field.type == "string" && node.string() != nullptr) ||
        (field.type == "integer" && node.integer() != nullptr) ||
        (field.type == "integer or null" && (node.integer() != nullptr || is_none)) ||
        (field.type == "table or null" && (node.table() != nullptr || is_none)) ||
        (field.type == "number" && (node.integer() != nullptr || node.real() != nullptr));
    if (!fits) {
      std::string expected = "the type " + std::string(field.type);
      if (const size_t at = field.type.find(" or null"); at != std::string_view::npos) {
        expected = (field.type[0] == 'i' ? "an " : "a ") + std::string(field.type.substr(0, at)) +
                   " or \"none\"";
      }
      problems_.push_back(value_problem("model." + entry.key, node, expected));
      return;
    }
    config_.model.overrides.push_back(entry);
  }

  // ---- keys against each other ----

  void check_run() {
    if (is_given("run.steps") && is_given("run.tokens")) {
      problem_at_key("run.tokens",
                     "run.tokens: run.steps sets the length already; keep one of them");
    } else if (!is_given("run.steps") && !is_given("run.tokens")) {
      missing("run", "run.steps or run.tokens");
    }
    const std::string& rendezvous = config_.run.rendezvous;
    const auto starts = [&](std::string_view prefix) {
      return rendezvous.rfind(prefix, 0) == 0 && rendezvous.size() > prefix.size();
    };
    if (rendezvous != "auto" && rendezvous != "env://" && !starts("tcp://") &&
        !starts("file:///")) {
      problem_at_key("run.rendezvous",
                     "run.rendezvous: got " + toml_string(rendezvous) +
                         ", expected \"auto\", \"env://\", \"tcp://host:port\" or "
                         "\"file:///shared/path\"");
    }
    if (config_.run.name.empty()) {
      problem_at_key("run.name", "run.name: got \"\", expected a name");
    }
  }

  void check_model() {
    if (is_given("model.preset") && is_given("model.from")) {
      problem_at_key("model.from",
                     "model.from: model.preset names the model already; keep one of them");
    }
    const Node* table = root_.find("model");
    if (table == nullptr || (table->table() != nullptr && table->table()->empty())) {
      missing("model", "model.preset or model.from");
    }
    for (const char* key : {"preset", "from"}) {
      const Node* node = table != nullptr ? table->find(key) : nullptr;
      if (node != nullptr && node->string() != nullptr && node->string()->empty()) {
        problem(*node, std::string("model.") + key + ": got \"\", expected a name");
      }
    }
  }

  void check_data() {
    if (is_given("data.train") && is_given("data.sources")) {
      problem_at_key("data.sources",
                     "data.sources: data.train names the files already; keep one of them");
    } else if (!is_given("data.train") && !is_given("data.sources")) {
      missing("data", "data.train or data.sources");
    } else if (!is_given("data.train")) {
      // Their own keys are checked with them.
    } else if (const Node* train = root_.find("data")->find("train");
               train->list() != nullptr && train->list()->empty()) {
      problem(*train, "data.train: got [], expected at least one path or glob");
    }
    if (config_.data.tokenizer.empty()) {
      problem_at_key("data.tokenizer",
                     "data.tokenizer: got \"\", expected \"bytes\" or the path of a "
                     "tokenizer.json");
    }
  }

  void check_validation() {
    if (!config_.data.validation.empty() && is_given("data.validation_fraction")) {
      problem_at_key(
          "data.validation_fraction",
          "data.validation_fraction has no effect: data.validation names files of their own");
    }
    const bool has_rows = !config_.data.validation.empty() || config_.data.validation_fraction > 0;
    if (!has_rows && is_given("validation.every") &&
        config_.validation.every.unit != Interval::Unit::Never) {
      problem_at_key("validation.every",
                     "validation.every has no effect: data.validation is empty and "
                     "data.validation_fraction 0; "
                     "use \"never\"");
    }
  }

  void check_clip_norm() {
    if (is_given("schedule.gradient_clip_norm") && is_given("optimizer.gradient_clip_norm")) {
      problem_at_key("schedule.gradient_clip_norm",
                     "schedule.gradient_clip_norm: optimizer.gradient_clip_norm sets it already; "
                     "keep one of them");
    }
  }

  void check_not_built() {
    if (config_.checkpoint.asynchronous) {
      problem_at_key("checkpoint.asynchronous",
                     "checkpoint.asynchronous: not built yet; use false");
    }
  }

  void fill_derived() {
    if (config_.run.is_any_world() && config_.run.threads == 0) {
      config_.run.threads = 1;  // products of other numbers of threads may sum in another order
    }
    if (config_.run.output.empty()) {
      config_.run.output = "runs/" + config_.run.name;
    }
    // One way to say it, so that the resolved file holds nothing without effect.
    if (!config_.validates()) {
      config_.validation.every = Interval{};
    }
  }

  // ---- reporting ----

  [[nodiscard]] bool is_given(const std::string& path) const {
    return config_.given.count(path) > 0;
  }
  void problem(const Node& node, std::string message) {
    problems_.push_back(problem_at(node.where, std::move(message)));
  }
  void problem_at_key(const std::string& path, std::string message) {
    problems_.push_back(problem_at(config_.where(path), std::move(message)));
  }
  void missing(std::string_view table, const std::string& what) {
    const Node* node = root_.find(table);
    if (node != nullptr && node->table() == nullptr) {
      return;  // said already
    }
    problems_.push_back(
        problem_at(node != nullptr ? node->where : Where{config_.file, 0}, what + " is missing"));
  }

  const Node& root_;
  std::span<const ModelField> model_fields_;
  RunConfig& config_;
  std::vector<Problem>& problems_;
};

/// Of keys that exclude each other, one that was overridden replaces the one in the file: `--set
/// run.tokens=2B`.
void prefer_overrides(Node& root) {
  struct Name {
    std::string_view table, key;
  };
  constexpr std::array<std::pair<Name, Name>, 5> kPairs{
      {{{"run", "steps"}, {"run", "tokens"}},
       {{"model", "preset"}, {"model", "from"}},
       {{"data", "train"}, {"data", "sources"}},
       {{"data", "validation"}, {"data", "validation_fraction"}},
       {{"optimizer", "gradient_clip_norm"}, {"schedule", "gradient_clip_norm"}}}};
  const auto is_override = [](const Node* node) {
    return node != nullptr && node->where.is_override();
  };
  const auto is_overridden = [&](const Name& name) {
    const Node* table = root.find(name.table);
    return table != nullptr && is_override(table->find(name.key));
  };
  for (const auto& [a, b] : kPairs) {
    const bool a_set = is_overridden(a);
    if (a_set == is_overridden(b)) {
      continue;
    }
    const Name& other = a_set ? b : a;
    if (Node* table = root.find(other.table)) {
      table->erase(other.key);
    }
  }
}

Loaded check(Node root, const std::string& file, std::span<const std::string> overrides,
             std::span<const ModelField> model_fields, std::vector<Problem> problems) {
  Loaded loaded;
  loaded.problems = std::move(problems);
  loaded.config.file = file;
  // After a syntax error there is nothing to check, and "missing" would be noise.
  if (loaded.problems.empty() || !root.table()->empty()) {
    apply_overrides(root, overrides, loaded.problems);
    prefer_overrides(root);
    Checker(root, file, model_fields, loaded).run();
  }
  sort_by_place(loaded.problems);
  return loaded;
}

}  // namespace

const Node* RunConfig::plugin_table(std::string_view kind, std::string_view plugin) const {
  const auto at = plugin_tables.find(std::string(kind) + "." + std::string(plugin));
  return at != plugin_tables.end() ? &at->second : nullptr;
}

Where RunConfig::where(const std::string& key) const {
  const auto at = given.find(key);
  return at != given.end() ? at->second : Where{file, 0};
}

Loaded load_config(const std::string& path, std::span<const std::string> overrides,
                   std::span<const ModelField> model_fields) {
  std::vector<Problem> problems;
  Node root = read_toml(path, problems);
  return check(std::move(root), path, overrides, model_fields, std::move(problems));
}

Loaded parse_config(std::string_view text, const std::string& file,
                    std::span<const std::string> overrides,
                    std::span<const ModelField> model_fields) {
  std::vector<Problem> problems;
  Node root = parse_toml(text, file, problems);
  return check(std::move(root), file, overrides, model_fields, std::move(problems));
}

std::vector<std::pair<std::string, std::string>> chosen_plugins(const RunConfig& config) {
  std::vector<std::pair<std::string, std::string>> chosen{
      {"batch_scheduler", config.batch_scheduler},
      {"communicator", config.communicator.used()},
      {"sharding", config.sharding},
      {"optimizer", config.optimizer.plugin},
      {"precision", config.precision},
      {"checkpoint", config.checkpoint.plugin}};
  for (const std::string& name : config.profilers) {
    chosen.emplace_back("profiler", name);
  }
  return chosen;
}

}  // namespace ciuic::core
