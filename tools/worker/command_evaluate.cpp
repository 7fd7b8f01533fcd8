// SPDX-License-Identifier: MIT
//
// ciuic evaluate: the loss of a model on given tokens or on a run's validation set, and on request
// its logits, gradients and chosen experts. One rank; one JSON object on stdout and nothing else.
#include <cstdio>
#include <optional>
#include <unistd.h>

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "core/data/tokenizer/tokenizer.h"
#include "core/launch/environment.h"
#include "core/plugin/precision.h"
#include "core/train/json_line.h"
#include "core/train/loaded_model.h"
#include "core/train/micro_batch.h"
#include "core/train/model_tokenizer.h"
#include "core/train/run_data.h"
#include "core/train/run_plan.h"
#include "core/train/tensor_bridge.h"
#include "tools/worker/commands.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
using core::ExitCode;
using core::Failure;

constexpr int64_t kRowsAtOnce = 4;
constexpr const char* kTensorFileFormat =
    "safetensors";  // the plugin that writes single tensor files

/// int64 [batch, sequence] from the tensor `tokens` of a file.
at::Tensor read_tokens(const core::ArchiveOpener& opener, const std::string& file) {
  const core::OpenArchive archive = opener.open(file);
  for (const core::ArchiveEntry& e : archive->list()) {
    if (e.key != "tokens") {
      continue;
    }
    if (!same(e.dtype, kI64) || e.shape.size() != 2 || e.shape[0] < 1 || e.shape[1] < 2) {
      throw Failure(
          ExitCode::Usage,
          "tokens: got " + dtype_name(e.dtype) + " with " + std::to_string(e.shape.size()) +
              " dimensions, expected int64 [batch, sequence] with at least 1 row of 2 tokens",
          "", {{"file", file}});
    }
    at::Tensor tokens = at::empty(e.shape, at::kLong);
    const Place place(e.shape);
    if (!archive->get("tokens", place.c(), core::to_abi(tokens).c())) {
      break;
    }
    return tokens;
  }
  throw Failure(ExitCode::Usage, "there is no tensor \"tokens\"", "", {{"file", file}});
}

void check_tokens(const at::Tensor& tokens, const core::ModelConfig& config,
                  const std::string& file) {
  const int64_t* t = tokens.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    if (t[i] < 0 || t[i] >= config.vocab_size) {
      throw Failure(ExitCode::Usage,
                    "tokens: got " + std::to_string(t[i]) + " at row " +
                        std::to_string(i / tokens.size(1)) + ", position " +
                        std::to_string(i % tokens.size(1)) + ", expected 0 to " +
                        std::to_string(config.vocab_size - 1),
                    "", {{"file", file}});
    }
  }
  if (tokens.size(1) > config.max_position_embeddings) {
    throw Failure(ExitCode::Usage,
                  "tokens: rows of " + std::to_string(tokens.size(1)) + ", expected at most " +
                      std::to_string(config.max_position_embeddings),
                  "", {{"file", file}});
  }
}

/// Each row is one document: position i predicts token i + 1, the last one nothing.
at::Tensor shifted_targets(const at::Tensor& tokens) {
  at::Tensor targets = at::full(tokens.sizes(), core::kIgnoredTarget, at::kLong);
  targets.narrow(1, 0, tokens.size(1) - 1).copy_(tokens.narrow(1, 1, tokens.size(1) - 1));
  return targets;
}

void write_tensors(const core::ArchiveOpener& opener, const std::string& file,
                   const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  const auto plugin = opener.create(kTensorFileFormat);
  std::vector<core::ArchiveEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    entries.push_back({name, false, core::to_dtype(tensor.scalar_type()), tensor.sizes().vec(),
                       static_cast<uint64_t>(tensor.nbytes())});
  }
  const core::Archive archive = plugin->begin(file, 0, entries);
  for (const auto& [name, tensor] : tensors) {
    const Place place(tensor.sizes().vec());
    archive.put(name, place.c(), core::to_abi(tensor).c());
  }
  archive.commit();
}

/// What FILE's precision says, as the types of a loaded model.
core::LoadedModel::Types types_of(const core::RunPlan& plan, core::Log& log) {
  const core::ChosenPlugin& chosen = plan.plugin(CIUIC_KIND_PRECISION);
  const auto precision = std::make_shared<core::PrecisionPlugin>(
      chosen.found, std::make_unique<core::HostContext>(chosen.found.descriptor->name, log),
      chosen.options, core::Placement{});
  core::LoadedModel::Types types;
  types.activation = core::to_scalar_type(precision->dtype_for("model", CIUIC_ROLE_ACTIVATION));
  types.value = [precision](const std::string& parameter) {
    const std::string module = parameter.substr(0, parameter.rfind(".weight"));
    return core::to_scalar_type(precision->dtype_for(module, CIUIC_ROLE_VALUE));
  };
  return types;
}

struct Outputs {
  std::string logits;
  std::string gradients;
  std::string routing;

  [[nodiscard]] bool any() const {
    return !(logits.empty() && gradients.empty() && routing.empty());
  }
};

core::LoadedModel::Loss run_tokens(core::LoadedModel& model, const at::Tensor& tokens,
                                   const Outputs& outputs, const core::ArchiveOpener& opener) {
  const at::Tensor targets = shifted_targets(tokens);
  const int64_t rows = tokens.size(0);
  const double seed = 1.0 / static_cast<double>(rows * (tokens.size(1) - 1));
  at::Tensor logits =
      outputs.logits.empty()
          ? at::Tensor()
          : at::empty({rows, tokens.size(1), model.config().vocab_size}, at::kFloat);
  std::vector<at::Tensor> experts;
  core::LoadedModel::Loss total;
  for (int64_t first = 0; first < rows; first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, rows - first);
    const at::Tensor some = tokens.narrow(0, first, count).contiguous();
    const at::Tensor wanted = targets.narrow(0, first, count).contiguous();
    const core::LoadedModel::Loss loss = outputs.gradients.empty()
                                             ? model.loss(some, wanted)
                                             : model.loss_and_gradients(some, wanted, seed);
    total.sum += loss.sum;
    total.tokens += loss.tokens;
    if (logits.defined()) {
      logits.narrow(0, first, count).copy_(model.logits(some, false));
    }
    if (!outputs.routing.empty()) {
      experts.push_back(model.chosen_experts(some));
    }
  }
  if (logits.defined()) {
    write_tensors(opener, outputs.logits, {{"logits", logits}});
  }
  if (!outputs.gradients.empty()) {
    write_tensors(opener, outputs.gradients, model.gradients());
  }
  if (!outputs.routing.empty()) {
    write_tensors(opener, outputs.routing, {{"experts", at::cat(experts, 1)}});
  }
  return total;
}

/// FILE's text as the model was trained to read it.
void use_tokenizer_of(const core::LoadedModel& model, core::DataConfig& data, core::Log& log) {
  const auto own = core::tokenizer_of_model(model.source());
  if (!own ||
      core::Tokenizer::open(*own).sha256() ==
          (data.tokenizer == "bytes" ? "" : core::Tokenizer::open(data.tokenizer).sha256())) {
    return;
  }
  log.warn("data.tokenizer is " + data.tokenizer + "; the model's own is used: " + *own);
  data.tokenizer = *own;
}

core::LoadedModel::Loss run_validation(core::LoadedModel& model, const core::RunPlan& plan,
                                       core::Log& log) {
  const core::Dataset data = core::open_data(plan, log);
  core::LoadedModel::Loss total;
  for (const core::MicroBatch& batch : core::load_validation(data, 0, 1, kRowsAtOnce)) {
    const core::LoadedModel::Loss loss = model.loss(batch.tokens, batch.targets);
    total.sum += loss.sum;
    total.tokens += loss.tokens;
  }
  if (total.tokens == 0) {
    throw Failure(ExitCode::Usage, "the configuration holds out no validation set",
                  "give --tokens, or set data.validation or data.validation_fraction");
  }
  return total;
}

CommandLine command_line() {
  CommandLine line(
      "evaluate",
      "ciuic evaluate [FILE] --model DIR [--tokens IN.safetensors] [--logits OUT.safetensors]\n"
      "       [--gradients OUT.safetensors] [--routing OUT.safetensors]",
      "Prints one JSON object with the mean next-token loss of the model in DIR (a run's folder, "
      "a\n"
      "checkpoint or a Hugging Face folder) on the tensor `tokens` of IN, int64 [batch, sequence], "
      "each row\n"
      "one document; without --tokens on FILE's validation set. fp32 unless FILE chooses another "
      "precision.",
      "  ciuic evaluate configs/quickstart.toml --model runs/quickstart\n"
      "  ciuic evaluate --model hf/dir --tokens tokens.safetensors --logits logits.safetensors\n");
  line.options().add_options()("model", po::value<std::string>()->value_name("DIR"),
                               "Where the weights are")(
      "tokens", po::value<std::string>()->value_name("FILE"), "Tokens to evaluate")(
      "logits", po::value<std::string>()->value_name("FILE"),
      "Writes fp32 logits [batch, sequence, vocabulary]")(
      "gradients", po::value<std::string>()->value_name("FILE"),
      "Writes the loss's fp32 gradients by name")(
      "routing", po::value<std::string>()->value_name("FILE"),
      "Writes the chosen `experts`, best first, int32 [mixtures, batch x sequence, experts per "
      "token]")("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
                "Overrides one key of FILE")(
      "path", po::value<std::vector<std::string>>()->composing()->value_name("FOLDER"),
      "Looks for plugins there first (plugins.path)");
  add_log_options(line);
  line.positional("file", 1);
  return line;
}

}  // namespace

int evaluate(const Arguments& arguments) {
  CommandLine line = command_line();
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  const std::string file = get(*values, "file");
  const std::string tokens_file = get(*values, "tokens");
  const Outputs outputs{get(*values, "logits"), get(*values, "gradients"), get(*values, "routing")};
  if (values->count("model") == 0) {
    throw line.usage_failure("no --model is given");
  }
  if (file.empty() && tokens_file.empty()) {
    throw line.usage_failure("neither FILE nor --tokens is given: there is nothing to evaluate on");
  }
  if (tokens_file.empty() && outputs.any()) {
    throw line.usage_failure("--logits, --gradients and --routing belong to --tokens");
  }
  at::set_num_threads(core::usable_cores());
  core::Log log({0, 1, terminal_level(*values), "", has_color(STDERR_FILENO)});
  std::optional<core::RunPlan> plan;
  if (!file.empty()) {
    plan.emplace(core::make_plan({file, get_all(*values, "set"), 1}, log));
  }
  const core::Catalog catalog =
      plan ? plan->catalog : core::Catalog(core::Catalog::search_path(folders_of(*values, "path")));
  const core::ArchiveOpener opener(catalog, log);
  const auto types = plan ? types_of(*plan, log) : core::LoadedModel::Types{};
  core::LoadedModel model(get(*values, "model"), opener, types, !outputs.gradients.empty());
  for (const std::string& note : model.notes()) {
    log.info(model.source() + ": " + note);
  }
  if (plan) {
    use_tokenizer_of(model, plan->config.data, log);
  }

  core::LoadedModel::Loss loss;
  if (tokens_file.empty()) {
    loss = run_validation(model, *plan, log);
  } else {
    const at::Tensor tokens = read_tokens(opener, tokens_file);
    check_tokens(tokens, model.config(), tokens_file);
    loss = run_tokens(model, tokens, outputs, opener);
  }
  std::printf("{\"loss\": %s, \"tokens\": %lld, \"model\": %s}\n",
              core::json_number(loss.mean()).c_str(), static_cast<long long>(loss.tokens),
              nlohmann::json(model.source()).dump().c_str());
  return 0;
}

}  // namespace ciuic::tools
