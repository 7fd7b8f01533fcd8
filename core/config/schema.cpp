// SPDX-License-Identifier: MIT
#include "core/config/schema.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ciuic::core {
namespace {

constexpr double kMost =
    1e15;  // of any count: products of two of them that are used stay far from overflow

constexpr std::string_view kDecorateDoc =
    "Layers around the plugin, outermost first: record, chaos, shadow; docs/decorators.md.";

constexpr std::array<Section, 14> kSections{{
    {"run",
     "Everything needed to repeat the run is here or in the lock, never only in the environment."},
    {"plugins", "Where shared libraries are looked for."},
    {"model",
     "A preset or a Hugging Face folder; any Hugging Face field by name overrides it (\"none\" is "
     "null)."},
    {"data", "Files in sorted order, one eos between two, are one token stream, cut into rows."},
    {"validation",
     "Loss on rows that are never trained on, also before the first step and after the last."},
    {"batch_scheduler", "Which samples, on which rank, in which micro-batch.", true},
    {"parallel", "Axes of the process mesh besides data."},
    {"communicator", "How ranks exchange tensors.", true},
    {"sharding", "Who owns which part of values, gradients and optimizer state.", true},
    {"optimizer", "The update rule.", true},
    {"precision", "Which dtype where.", true},
    {"schedule", "A number, or phases; step t uses the value at t, reached at `until`."},
    {"checkpoint", "What is kept, and how often.", true},
    {"profiler", "Each plugin with its own table, as [profiler.monitor].", true},
}};

/// at<&RunConfig::run, &RunSection::name> is the slot of run.name.
template <auto... Members>
Slot at(RunConfig& config) {
  return &(config.*....*Members);
}

constexpr std::array kKeys{
    // [run]
    Key{"run", "name", KeyType::String, at<&RunConfig::run, &RunSection::name>,
        "Shown in logs and reports.", kPlace},
    Key{"run", "output", KeyType::String, at<&RunConfig::run, &RunSection::output>,
        "The run's folder; empty: runs/<name>.", kPlace},
    Key{"run", "seed", KeyType::Integer, at<&RunConfig::run, &RunSection::seed>,
        "Of initial weights and of the order of samples.", kMovesBits, 0, 9.3e18},
    Key{"run", "steps", KeyType::Count, at<&RunConfig::run, &RunSection::steps>,
        "Length of the run, in all; this or tokens.", kMovesBits | kOptional | kAsked, 1, kMost, "",
        "200"},
    Key{"run", "tokens", KeyType::Count, at<&RunConfig::run, &RunSection::tokens>,
        "Length of the run, in all; this or steps.", kMovesBits | kOptional, 1, kMost, "",
        "\"2B\""},
    Key{"run", "device", KeyType::Choice, at<&RunConfig::run, &RunSection::device>,
        "Where tensors live.", kMovesBits, 0, 0, "cpu | cuda"},
    Key{"run", "ranks", KeyType::Integer, at<&RunConfig::run, &RunSection::ranks>,
        "Processes started here; under a launcher its environment rules.", kMovesBits, 1, 65536},
    Key{"run", "threads", KeyType::Integer, at<&RunConfig::run, &RunSection::threads>,
        "Per rank; 0: usable cores / ranks on this host.", kMovesBits, 0, 4096},
    Key{"run", "rendezvous", KeyType::String, at<&RunConfig::run, &RunSection::rendezvous>,
        "How ranks find each other: auto, env://, tcp://host:port or file:///shared/path.", kPlace},
    Key{"run", "recompute", KeyType::Choice, at<&RunConfig::run, &RunSection::recompute>,
        "What backward computes again to save memory: nothing; norms, attention's up-projections "
        "and SwiGLUs; or whole layers. The same bits in all three.",
        0, 0, 0, "none | selective | full"},
    Key{"run", "reproducible", KeyType::Choice, at<&RunConfig::run, &RunSection::reproducible>,
        "Which runs of this file have the same bits: those with as many ranks; or those with 1, 2, "
        "4, ... ranks and the same micro-batch, at a cost that docs/sharding.md states.",
        kMovesBits, 0, 0, "same_world | any_world"},
    // [plugins]
    Key{"plugins", "path", KeyType::Strings, at<&RunConfig::plugins, &PluginsSection::path>,
        "Folders; then CIUIC_PLUGIN_PATH, then those beside the binary.", kPlace},
    Key{"plugins", "allow_env", KeyType::Boolean,
        at<&RunConfig::plugins, &PluginsSection::allow_env>,
        "Whether CIUIC_PLUGIN_PATH is looked at.", kPlace},
    Key{"plugins", "lock", KeyType::String, at<&RunConfig::plugins, &PluginsSection::lock>,
        "A file of ciuic plugin lock: a plugin that it does not name, or with another sha256, is "
        "refused.",
        kPlace | kOptional, 0, 0, "", "\"ciuic.lock\""},
    Key{"plugins", "trust", KeyType::Choice, at<&RunConfig::plugins, &PluginsSection::trust>,
        "Whose files are loaded: strict: root's and one's own; owner: also those of the owner of "
        "ciuic; any: for file systems without owners and modes.",
        kPlace, 0, 0, "strict | owner | any"},
    Key{"plugins", "probe_timeout", KeyType::Duration,
        at<&RunConfig::plugins, &PluginsSection::probe_timeout>,
        "How long a plugin may take to load in the child that looks at it first.", kPlace, 1e6,
        3.6e12},
    Key{"plugins", "call_timeout", KeyType::Duration,
        at<&RunConfig::plugins, &PluginsSection::call_timeout>,
        "A call into a plugin that takes longer ends the run with its name; \"never\" turns it "
        "off. "
        "Waits for communication have communicator.timeout where that is longer.",
        kPlace, 0, 9.2e18},
    // [model]
    Key{"model", "preset", KeyType::String, at<&RunConfig::model, &ModelSection::preset>,
        "A built-in configuration; this or from.", kMovesBits | kOptional | kAsked, 0, 0, "",
        "\"tiny\""},
    Key{"model", "from", KeyType::String, at<&RunConfig::model, &ModelSection::from>,
        "A Hugging Face folder: configuration and weights; this or preset.", kMovesBits | kOptional,
        0, 0, "", "\"hf/dir\""},
    // [data]
    Key{"data", "train", KeyType::Strings, at<&RunConfig::data, &DataConfig::train>,
        "Text, .jsonl, Megatron's .bin with .idx, llm.c's .bin, as paths and globs; this or "
        "sources.",
        kMovesBits | kOptional | kAsked, 0, 0, "", "[\"data/*.txt\"]"},
    Key{"data", "sources", KeyType::Sources, at<&RunConfig::data, &DataConfig::sources>,
        "Several sources, blended by weight; each { name, files, weight = 1, repeat } with at most "
        "`repeat` passes; docs/data.md.",
        kMovesBits | kOptional, 0, 0, "",
        "[{ name = \"web\", files = [\"web/*.jsonl\"], weight = 0.8 }, { name = \"books\", "
        "files = [\"books/*.txt\"], weight = 0.2, repeat = 4 }]"},
    Key{"data", "validation", KeyType::Strings, at<&RunConfig::data, &DataConfig::validation>,
        "Files of their own; empty: the last `validation_fraction` of the rows is held out.",
        kMovesBits},
    Key{"data", "validation_fraction", KeyType::Float,
        at<&RunConfig::data, &DataConfig::validation_fraction>,
        "Of the rows, to the nearest whole and at least one; 0: none.", kMovesBits, 0, 1},
    Key{"data", "tokenizer", KeyType::String, at<&RunConfig::data, &DataConfig::tokenizer>,
        "\"bytes\": a token is a byte; or a Hugging Face tokenizer.json or a folder with one.",
        kMovesBits},
    Key{"data", "sequence_tokens", KeyType::Count,
        at<&RunConfig::data, &DataConfig::sequence_tokens>, "Tokens of a row.", kMovesBits, 1,
        16'777'216},
    Key{"data", "order", KeyType::Choice, at<&RunConfig::data, &DataConfig::order>,
        "Of the rows, in each epoch.", kMovesBits, 0, 0, "shuffled | sequential"},
    Key{"data", "attention", KeyType::Choice, at<&RunConfig::data, &DataConfig::attention>,
        "row: a row is one sequence. document: attention and positions stay inside a document.",
        kMovesBits, 0, 0, "row | document"},
    // [validation]
    Key{"validation", "every", KeyType::Interval,
        at<&RunConfig::validation, &ValidationSection::every>, "\"never\" turns it off.",
        kMovesBits},
    Key{"validation", "sequences", KeyType::Count,
        at<&RunConfig::validation, &ValidationSection::sequences>,
        "Rows at most; always the same ones.", 0, 1, kMost},
    // One plugin of each kind, with what the host itself needs to know beside it.
    Key{"batch_scheduler", "plugin", KeyType::Plugin, at<&RunConfig::batch_scheduler>, "Which one.",
        kMovesBits},
    Key{"batch_scheduler", "decorate", KeyType::Decorators,
        at<&RunConfig::decorate, &DecorateKeys::batch_scheduler>, kDecorateDoc, kOptional, 0, 0, "",
        "[{ with = \"record\" }]"},
    Key{"parallel", "expert", KeyType::Integer, at<&RunConfig::parallel, &ParallelSection::expert>,
        "Ranks that share out the routed experts of each layer and send each other tokens; divides "
        "the ranks and n_routed_experts; docs/parallelism.md.",
        kMovesBits, 1, 65536},
    Key{"communicator", "plugin", KeyType::Plugin,
        at<&RunConfig::communicator, &CommunicatorSection::plugin>,
        "Which one. auto: local for one rank, shm for ranks of one machine, gloo else.",
        kMovesBits},
    Key{"communicator", "timeout", KeyType::Duration,
        at<&RunConfig::communicator, &CommunicatorSection::timeout>,
        "Deadline of one operation, for a plugin whose own table does not set it.", 0, 1e6, 9.2e18},
    Key{"communicator", "decorate", KeyType::Decorators,
        at<&RunConfig::decorate, &DecorateKeys::communicator>, kDecorateDoc, kOptional, 0, 0, "",
        "[{ with = \"record\" }]"},
    Key{"sharding", "plugin", KeyType::Plugin, at<&RunConfig::sharding>, "Which one.", kMovesBits},
    Key{"sharding", "decorate", KeyType::Decorators,
        at<&RunConfig::decorate, &DecorateKeys::sharding>, kDecorateDoc, kOptional, 0, 0, "",
        "[{ with = \"record\" }]"},
    Key{"optimizer", "plugin", KeyType::Plugin,
        at<&RunConfig::optimizer, &OptimizerSection::plugin>, "Which one.", kMovesBits},
    Key{"optimizer", "gradient_clip_norm", KeyType::Float,
        at<&RunConfig::optimizer, &OptimizerSection::gradient_clip_norm>,
        "Largest global norm of the gradients; 0: no clipping.", kMovesBits, 0, 1e30},
    Key{"optimizer", "gradient_norm", KeyType::Choice,
        at<&RunConfig::optimizer, &OptimizerSection::gradient_norm>,
        "The norm of the whole gradient that is reported and clipped: root of the sum of squares, "
        "sum "
        "of magnitudes, or largest magnitude.",
        kMovesBits, 0, 0, "l2 | l1 | max"},
    Key{"optimizer", "gradient_norms", KeyType::Strings,
        at<&RunConfig::optimizer, &OptimizerSection::gradient_norms>,
        "Norms of parts of the gradient that each step reports too: a pattern with * and ? over "
        "full names of parameters for each, such as \"*.self_attn.*\"."},
    Key{"optimizer", "max_skipped_steps", KeyType::Integer,
        at<&RunConfig::optimizer, &OptimizerSection::max_skipped_steps>,
        "Steps in a row that may be skipped because the loss or a gradient is not finite, before "
        "the "
        "run ends with 7; steps at which the loss scale falls do not count. 0: ends at the first.",
        0, 0, 1e6},
    Key{"optimizer", "frozen", KeyType::Strings,
        at<&RunConfig::optimizer, &OptimizerSection::frozen>,
        "Parameters that keep their values, without gradient and state: patterns with * and ? over "
        "full names, such as \"model.layers.0.*\".",
        kMovesBits},
    Key{"optimizer", "weight_decay_scale", KeyType::Factors,
        at<&RunConfig::optimizer, &OptimizerSection::weight_decay_scale>,
        "Factors on the rule's weight decay by pattern, such as { \"*norm*\" = 0.0 }; of several "
        "that match, the last counts.",
        kMovesBits, 0, 1e6},
    Key{"optimizer", "learning_rate_scale", KeyType::Factors,
        at<&RunConfig::optimizer, &OptimizerSection::learning_rate_scale>,
        "Likewise: factors on the learning rate.", kMovesBits, 0, 1e6},
    Key{"optimizer", "embedding_gradient_scale", KeyType::Float,
        at<&RunConfig::optimizer, &OptimizerSection::embedding_gradient_scale>,
        "Factor on the gradient that reaches the embedding through the look-up of tokens, not "
        "through a tied head; 0: detached.",
        kMovesBits, 0, 1},
    Key{"optimizer", "decorate", KeyType::Decorators,
        at<&RunConfig::decorate, &DecorateKeys::optimizer>, kDecorateDoc, kOptional, 0, 0, "",
        "[{ with = \"record\" }]"},
    Key{"precision", "plugin", KeyType::Plugin, at<&RunConfig::precision>, "Which one.",
        kMovesBits},
    Key{"precision", "decorate", KeyType::Decorators,
        at<&RunConfig::decorate, &DecorateKeys::precision>, kDecorateDoc, kOptional, 0, 0, "",
        "[{ with = \"record\" }]"},
    // [schedule]
    Key{"schedule", "learning_rate", KeyType::Schedule,
        at<&RunConfig::schedule, &ScheduleSection::learning_rate>,
        "A number, or phases { until = \"N steps\" | \"N tokens\" | \"end\", to, shape = "
        "\"linear\" | \"constant\" | \"cosine\" | \"step\" | \"exponential\" | \"sqrt\" | "
        "\"inverse_sqrt\" }.",
        kMovesBits, 0, 1e6},
    Key{"schedule", "expert_bias_rate", KeyType::Schedule,
        at<&RunConfig::schedule, &ScheduleSection::expert_bias_rate>,
        "Likewise; 0 turns the aux-loss-free update off.", kMovesBits, 0, 1e6},
    Key{"schedule", "balance_loss_weight", KeyType::Schedule,
        at<&RunConfig::schedule, &ScheduleSection::balance_loss_weight>,
        "Likewise: of the loss that balances experts within a sequence (V3's alpha, 1e-4 in the "
        "paper; V2's alpha_1).",
        kMovesBits, 0, 1e6},
    Key{"schedule", "device_balance_loss_weight", KeyType::Schedule,
        at<&RunConfig::schedule, &ScheduleSection::device_balance_loss_weight>,
        "Likewise: of V2's loss that balances groups of experts (alpha_2).", kMovesBits, 0, 1e6},
    Key{"schedule", "communication_balance_loss_weight", KeyType::Schedule,
        at<&RunConfig::schedule, &ScheduleSection::communication_balance_loss_weight>,
        "Likewise: of V2's loss that balances what groups receive (alpha_3).", kMovesBits, 0, 1e6},
    Key{"schedule", "router_z_loss_weight", KeyType::Schedule,
        at<&RunConfig::schedule, &ScheduleSection::router_z_loss_weight>,
        "Likewise: of the squared log-sum-exp of the routers' logits.", kMovesBits, 0, 1e6},
    Key{"schedule", "mtp_loss_weight", KeyType::Schedule,
        at<&RunConfig::schedule, &ScheduleSection::mtp_loss_weight>,
        "Likewise: of multi-token prediction (lambda), for models with num_nextn_predict_layers.",
        kMovesBits, 0, 1e6},
    Key{"schedule", "router_noise", KeyType::Schedule,
        at<&RunConfig::schedule, &ScheduleSection::router_noise>,
        "Likewise: standard deviation of normal noise on the routers' logits while training.",
        kMovesBits, 0, 1e6},
    Key{"schedule", "gradient_clip_norm", KeyType::Schedule,
        at<&RunConfig::schedule, &ScheduleSection::gradient_clip_norm>,
        "Likewise, in place of optimizer.gradient_clip_norm.", kMovesBits | kOptional, 0, 1e30, "",
        "1.0"},
    // [checkpoint]
    Key{"checkpoint", "plugin", KeyType::Plugin,
        at<&RunConfig::checkpoint, &CheckpointSection::plugin>, "Which one.", 0},
    Key{"checkpoint", "every", KeyType::Interval,
        at<&RunConfig::checkpoint, &CheckpointSection::every>,
        "\"50 steps\", \"1 epoch\", \"10m\" or \"never\"; the last state is saved too, unless "
        "\"never\".",
        0},
    Key{"checkpoint", "tag", KeyType::String, at<&RunConfig::checkpoint, &CheckpointSection::tag>,
        "A second name beside step-N, such as epoch-{epoch}.", 0},
    Key{"checkpoint", "keep", KeyType::Integer,
        at<&RunConfig::checkpoint, &CheckpointSection::keep>, "Newest ones that stay; 0: all.", 0,
        0, 1e9},
    Key{"checkpoint", "asynchronous", KeyType::Boolean,
        at<&RunConfig::checkpoint, &CheckpointSection::asynchronous>,
        "Write while training goes on: not built yet, refused.", 0},
    Key{"checkpoint", "decorate", KeyType::Decorators,
        at<&RunConfig::decorate, &DecorateKeys::checkpoint>, kDecorateDoc, kOptional, 0, 0, "",
        "[{ with = \"record\" }]"},
    // [profiler]
    Key{"profiler", "plugins", KeyType::Plugins, at<&RunConfig::profilers>, "Any number.", 0},
    Key{"profiler", "decorate", KeyType::Decorators,
        at<&RunConfig::decorate, &DecorateKeys::profiler>, kDecorateDoc, kOptional, 0, 0, "",
        "[{ with = \"record\" }]"},
};

}  // namespace

std::span<const Section> sections() { return kSections; }
std::span<const Key> keys() { return kKeys; }

const Section* find_section(std::string_view name) {
  for (const Section& section : kSections) {
    if (section.name == name) {
      return &section;
    }
  }
  return nullptr;
}

const Key* find_key(std::string_view table, std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.table == table && key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

std::vector<std::string_view> key_names(std::string_view table) {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) {
    if (key.table == table) {
      names.push_back(key.name);
    }
  }
  return names;
}

std::vector<std::string_view> choices_of(const Key& key) {
  constexpr std::string_view kBetween = " | ";
  std::vector<std::string_view> choices;
  for (std::string_view rest = key.choices; !rest.empty();) {
    const size_t end = std::min(rest.find(kBetween), rest.size());
    choices.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + kBetween.size(), rest.size()));
  }
  return choices;
}

bool is_set(const Key& key, const RunConfig& config) {
  const Slot slot = key.slot(const_cast<RunConfig&>(config));
  if (const auto* number = std::get_if<std::optional<int64_t>*>(&slot)) {
    return (*number)->has_value();
  }
  if (const auto* text = std::get_if<std::string*>(&slot)) {
    return !(*text)->empty();
  }
  if (const auto* list = std::get_if<std::vector<std::string>*>(&slot)) {
    return !(*list)->empty();
  }
  if (const auto* sources = std::get_if<std::vector<DataSource>*>(&slot)) {
    return !(*sources)->empty();
  }
  if (const auto* factors = std::get_if<std::vector<NameFactor>*>(&slot)) {
    return !(*factors)->empty();
  }
  if (const auto* phases = std::get_if<SchedulePhases*>(&slot)) {
    return !(*phases)->empty();
  }
  if (const auto* decorators = std::get_if<DecoratorList*>(&slot)) {
    return !(*decorators)->is_empty();
  }
  return true;
}

std::string_view type_name(KeyType type) {
  switch (type) {
    case KeyType::Boolean:
      return "boolean";
    case KeyType::Integer:
      return "integer";
    case KeyType::Count:
      return "count";
    case KeyType::Float:
      return "number";
    case KeyType::String:
      return "string";
    case KeyType::Plugin:
      return "name of a plugin";
    case KeyType::Choice:
      return "choice";
    case KeyType::Strings:
      return "list of strings";
    case KeyType::Plugins:
      return "list of plugins";
    case KeyType::Duration:
      return "duration";
    case KeyType::Interval:
      return "interval";
    case KeyType::Schedule:
      return "number or phases";
    case KeyType::Decorators:
      return "list of decorators";
    case KeyType::Sources:
      return "list of sources";
    case KeyType::Factors:
      return "table of factors";
  }
  return "";
}

std::string range_text(const Key& key) {
  if (!key.choices.empty()) {
    return std::string(key.choices);
  }
  if (!key.is_bounded()) {
    return "";
  }
  const auto text = [&](double bound) {
    if (key.type == KeyType::Duration) {
      return format_duration(std::chrono::nanoseconds(static_cast<int64_t>(bound)));
    }
    return bound == std::floor(bound) && bound < 1e9 ? std::to_string(static_cast<int64_t>(bound))
                                                     : toml_float(bound);
  };
  return key.max >= 1e9 ? text(key.min) + " or more" : text(key.min) + " to " + text(key.max);
}

}  // namespace ciuic::core
