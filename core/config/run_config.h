// SPDX-License-Identifier: MIT
//
// The typed run file: one aggregate per table, whose member initialisers are the defaults.
// core/config/schema.h ties each member to its key.
//
// Tables of plugins stay Nodes here; core/config/plugin_options.h turns the chosen ones into typed
// options once their plugins are found.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config/node.h"
#include "core/config/problem.h"
#include "core/config/quantity.h"
#include "core/config/schedule_phase.h"

namespace ciuic::core {

struct RunSection {
  std::string name = "run";
  std::string output;  // empty in the file: runs/<name>; never empty once loaded
  int64_t seed = 1234;
  std::optional<int64_t> steps;  // exactly one of steps and tokens is set
  std::optional<int64_t> tokens;
  std::string device = "cpu";
  int64_t ranks = 1;
  int64_t threads = 0;
  std::string rendezvous = "auto";
  std::string recompute = "none";
  std::string reproducible = "same_world";

  [[nodiscard]] bool is_any_world() const { return reproducible == "any_world"; }
};

struct PluginsSection {
  std::vector<std::string> path;
  std::string lock;  // empty: none
  bool allow_env = true;
  std::string trust = "owner";
  std::chrono::nanoseconds probe_timeout = std::chrono::seconds(20);
  std::chrono::nanoseconds call_timeout = std::chrono::minutes(10);  // 0: never
};

struct ModelSection {
  std::string preset;  // at most one of preset and from is set
  std::string from;
  /// The other keys, by Hugging Face name, sorted. See model_value().
  std::vector<Entry> overrides;
};

/// One of several sources that are blended.
struct DataSource {
  std::string name;
  std::vector<std::string> files;
  double weight = 1;
  std::optional<double> repeat;  // passes at the most; nothing: without end
};

struct DataConfig {
  std::vector<std::string> train;
  std::vector<DataSource> sources;  // instead of train
  std::vector<std::string> validation;
  double validation_fraction = 0.02;
  std::string tokenizer = "bytes";
  int64_t sequence_tokens = 256;
  std::string order = "shuffled";
  std::string attention = "row";

  [[nodiscard]] bool is_document_attention() const { return attention == "document"; }
  [[nodiscard]] bool is_shuffled() const { return order == "shuffled"; }
};

struct ValidationSection {
  Interval every{Interval::Unit::Steps, 50};
  int64_t sequences = 64;
};

struct CommunicatorSection {
  std::string plugin = "auto";
  std::string chosen;  // what "auto" became
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);

  [[nodiscard]] bool is_auto() const { return plugin == "auto"; }
  [[nodiscard]] const std::string& used() const { return chosen.empty() ? plugin : chosen; }
};

struct ParallelSection {
  int64_t expert = 1;
};

/// A factor for the parameters whose names match.
struct NameFactor {
  std::string pattern;  // * is any text, ? any one character
  double factor = 1;
};

struct OptimizerSection {
  std::string plugin = "adamw";
  double gradient_clip_norm = 1.0;                                  // 0: off
  std::vector<std::string> frozen;                                  // patterns
  std::vector<NameFactor> weight_decay_scale, learning_rate_scale;  // of several, the last counts
  double embedding_gradient_scale = 1;
  std::string gradient_norm = "l2";
  std::vector<std::string> gradient_norms;  // patterns
  int64_t max_skipped_steps = 10;
};

struct ScheduleSection {
  SchedulePhases learning_rate{
      {SchedulePhase::Until::Steps, 20, 3e-4, SchedulePhase::Shape::Linear},
      {SchedulePhase::Until::End, 0, 3e-5, SchedulePhase::Shape::Cosine}};
  SchedulePhases expert_bias_rate = constant(0.001);
  SchedulePhases balance_loss_weight = constant(0);
  SchedulePhases device_balance_loss_weight = constant(0);
  SchedulePhases communication_balance_loss_weight = constant(0);
  SchedulePhases router_z_loss_weight = constant(0);
  SchedulePhases mtp_loss_weight = constant(0.3);
  SchedulePhases router_noise = constant(0);
  SchedulePhases gradient_clip_norm;  // empty: optimizer.gradient_clip_norm

  static SchedulePhases constant(double value) {
    return {{SchedulePhase::Until::End, 0, value, SchedulePhase::Shape::Constant}};
  }
};

struct CheckpointSection {
  std::string plugin = "sharded";
  Interval every{Interval::Unit::Steps, 100};
  std::string tag;
  int64_t keep = 3;  // 0: all
  bool asynchronous = false;
};

/// Decorators around a kind's plugins, outermost first, as they stand in the file; read by
/// core/plugin/decorator/decorator_spec.h, which knows each one's keys.
struct DecoratorList {
  Node list;

  [[nodiscard]] bool is_empty() const { return list.list() == nullptr || list.list()->empty(); }
};

/// `decorate` of each kind's table.
struct DecorateKeys {
  DecoratorList batch_scheduler, communicator, sharding, optimizer, precision, checkpoint, profiler;
};

struct RunConfig {
  RunSection run;
  PluginsSection plugins;
  ModelSection model;
  DataConfig data;
  ValidationSection validation;
  std::string batch_scheduler = "fixed";  // a plugin, as are sharding and precision
  ParallelSection parallel;
  CommunicatorSection communicator;
  std::string sharding = "ddp";
  OptimizerSection optimizer;
  std::string precision = "fp32";
  ScheduleSection schedule;
  CheckpointSection checkpoint;
  std::vector<std::string> profilers;
  DecorateKeys decorate;

  /// Tables of plugins, chosen or not, by "<kind>.<plugin>".
  std::map<std::string, Node> plugin_tables;
  /// Where each key that was given stands, by "<table>.<key>". Not here: the default holds.
  std::map<std::string, Where> given;

  [[nodiscard]] const Node* plugin_table(std::string_view kind, std::string_view plugin) const;
  /// Where a key was given; for one that was not, the file and line 0.
  [[nodiscard]] Where where(const std::string& key) const;
  std::string file;

  /// schedule.gradient_clip_norm, or optimizer.gradient_clip_norm as a schedule.
  [[nodiscard]] SchedulePhases clip_norm() const {
    return schedule.gradient_clip_norm.empty()
               ? ScheduleSection::constant(optimizer.gradient_clip_norm)
               : schedule.gradient_clip_norm;
  }
  [[nodiscard]] bool validates() const {
    return validation.every.unit != Interval::Unit::Never &&
           (!data.validation.empty() || data.validation_fraction > 0);
  }
};

/// A field that [model] takes besides its own keys; the caller gets them from ModelConfig.
struct ModelField {
  std::string_view name;
  std::string_view
      type;  // "integer", "number", "boolean", "string", "integer or null" or "table or null"
  std::string_view doc;
};

struct Loaded {
  RunConfig config;
  std::vector<Problem> problems;  // in the order of the file; empty: the configuration is good

  [[nodiscard]] bool ok() const { return problems.empty(); }
};

/// Reads `path`, applies the overrides ("a.b=c"), checks every key. Without `model_fields` the
/// names in [model] are not checked.
Loaded load_config(const std::string& path, std::span<const std::string> overrides = {},
                   std::span<const ModelField> model_fields = {});
/// The same for text; `file` names it in messages.
Loaded parse_config(std::string_view text, const std::string& file,
                    std::span<const std::string> overrides = {},
                    std::span<const ModelField> model_fields = {});

/// The plugins that the configuration chose, as (kind, name): one of each kind, any number of
/// profilers.
std::vector<std::pair<std::string, std::string>> chosen_plugins(const RunConfig& config);

}  // namespace ciuic::core
