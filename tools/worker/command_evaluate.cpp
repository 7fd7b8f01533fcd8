// SPDX-License-Identifier: MIT
//
// ciuic evaluate: the loss and perplexity of a model on given tokens, on a text or on a run's
// validation set, and on request its logits, gradients and chosen experts. One rank; one JSON object
// on stdout and nothing else.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unistd.h>

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "core/data/find_files.h"
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
#include "core/train/text_windows.h"
#include "tools/worker/commands.h"
#include "tools/worker/progress_line.h"

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
  types.precision = precision;
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

/// Adds up, and shows how far it is.
class Sum {
 public:
  Sum(int64_t total_tokens, bool is_quiet) : progress_(total_tokens, is_quiet) {}
  void add(const core::LoadedModel::Loss& loss) {
    total_.sum += loss.sum;
    total_.tokens += loss.tokens;
    progress_.update(total_.tokens, total_.mean());
  }
  core::LoadedModel::Loss finish() {
    progress_.finish(total_.tokens, total_.mean());
    return total_;
  }

 private:
  core::LoadedModel::Loss total_;
  ProgressLine progress_;
};

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
                                       bool is_quiet, core::Log& log) {
  const core::Dataset data = core::open_data(plan, log);
  const auto rows = static_cast<int64_t>(data.validation_rows().size());
  if (rows == 0) {
    throw Failure(ExitCode::Usage, "the configuration holds out no validation set",
                  "give --tokens or --text, or set data.validation or data.validation_fraction");
  }
  Sum sum(rows * data.sequence_tokens(), is_quiet);
  for (const core::MicroBatch& batch : core::load_validation(data, 0, 1, kRowsAtOnce)) {
    sum.add(model.loss(batch.tokens, batch.targets, batch.document_starts));
  }
  return sum.finish();
}

/// How --text is cut.
struct Cut {
  int64_t sequence = 0;
  int64_t stride = 0;
};

Cut cut_of(const CommandLine& line, const po::variables_map& values, int64_t default_sequence,
           int64_t most) {
  Cut cut;
  cut.sequence = values.count("sequence-tokens") != 0 ? values["sequence-tokens"].as<int64_t>()
                                                      : std::min(default_sequence, most);
  if (cut.sequence < 1 || cut.sequence > most) {
    throw line.usage_failure("--sequence-tokens: got " + std::to_string(cut.sequence) +
                             ", expected 1 to " + std::to_string(most) +
                             " (max_position_embeddings)");
  }
  cut.stride = values.count("stride") != 0 ? values["stride"].as<int64_t>() : cut.sequence;
  if (cut.stride < 1 || cut.stride > cut.sequence) {
    throw line.usage_failure("--stride: got " + std::to_string(cut.stride) + ", expected 1 to " +
                             std::to_string(cut.sequence) + ", the tokens of a row");
  }
  return cut;
}

/// One row of a batch; equal lengths share a batch.
void fill_row(const core::TokenStream& text, const core::TextWindow& window, int64_t* inputs,
              int64_t* targets) {
  text.piece(window.begin, window.length, inputs, targets, nullptr);
  std::fill_n(targets, window.seen, core::kIgnoredTarget);
}

/// The file is mapped, and a batch of rows is in memory at a time.
core::LoadedModel::Loss run_text(core::LoadedModel& model, const core::TokenStream& text,
                                 const Cut& cut, bool is_quiet) {
  const core::TextWindows windows(text.num_tokens(), cut.sequence, cut.stride);
  Sum sum(text.num_tokens() - 1, is_quiet);
  for (int64_t next = 0; next < windows.count();) {
    const int64_t length = windows.at(next).length;
    int64_t rows = 1;
    while (rows < kRowsAtOnce && next + rows < windows.count() &&
           windows.at(next + rows).length == length) {
      ++rows;
    }
    const at::Tensor inputs = at::empty({rows, length}, at::kLong);
    const at::Tensor targets = at::empty({rows, length}, at::kLong);
    for (int64_t row = 0; row < rows; ++row) {
      fill_row(text, windows.at(next + row), inputs.mutable_data_ptr<int64_t>() + row * length,
               targets.mutable_data_ptr<int64_t>() + row * length);
    }
    sum.add(model.loss(inputs, targets));
    next += rows;
  }
  return sum.finish();
}

/// A folder for tokens that are wanted once; goes with this object, while mapped files stay.
class PassingFolder {
 public:
  PassingFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "ciuic-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      throw Failure(ExitCode::Storage,
                    std::string("no folder for tokens can be made: ") + std::strerror(errno), "",
                    {{"file", path}});
    }
    path_ = path;
  }
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;
  ~PassingFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Any kind of file that data.train takes, by the model's own tokenizer.
core::TokenStream open_text(const std::string& file, const core::LoadedModel& model,
                            core::Log& log) {
  const PassingFolder folder;
  core::DataConfig config;
  config.tokenizer = core::tokenizer_of_model(model.source()).value_or("bytes");
  core::Dataset::Options options;
  options.ids = core::token_ids(model.config());
  options.cache.folder = folder.path();
  options.cache.threads = core::usable_cores();
  options.cache.note = [&log](const std::string& what) { log.info(what); };
  core::TokenStream text =
      core::Dataset::open_files(core::find_files({file}, "--text"), config, options);
  if (text.num_tokens() < 2) {
    throw Failure(ExitCode::Usage,
                  "--text: got " + std::to_string(text.num_tokens()) +
                      " tokens, expected at least 2: each token but the first has a loss",
                  "give a longer text", {{"file", file}});
  }
  return text;
}

CommandLine command_line() {
  CommandLine line(
      "evaluate",
      "ciuic evaluate [FILE] --model DIR [--tokens IN.safetensors] [--logits OUT.safetensors]\n"
      "       [--gradients OUT.safetensors] [--routing OUT.safetensors]\n"
      "       ciuic evaluate [FILE] --model DIR --text FILE [--sequence-tokens N] [--stride N]",
      "Prints one JSON object with the mean next-token loss, and its perplexity, of the model in "
      "DIR (a run's\n"
      "folder, a checkpoint or a Hugging Face folder) on the tensor `tokens` of IN, int64 [batch, "
      "sequence],\n"
      "each row one document; or on a text, cut into rows; else on FILE's validation set. fp32 "
      "unless FILE\n"
      "chooses another precision.",
      "  ciuic evaluate configs/quickstart.toml --model runs/quickstart\n"
      "  ciuic evaluate --model hf/dir --tokens tokens.safetensors --logits logits.safetensors\n"
      "  ciuic evaluate --model runs/quickstart --text book.txt --sequence-tokens 256 --stride "
      "128\n");
  line.options().add_options()("model", po::value<std::string>()->value_name("DIR"),
                               "Where the weights are")(
      "tokens", po::value<std::string>()->value_name("FILE"), "Tokens to evaluate")(
      "logits", po::value<std::string>()->value_name("FILE"),
      "Writes fp32 logits [batch, sequence, vocabulary]")(
      "gradients", po::value<std::string>()->value_name("FILE"),
      "Writes the loss's fp32 gradients by name")(
      "routing", po::value<std::string>()->value_name("FILE"),
      "Writes the chosen `experts`, best first, int32 [mixtures, batch x sequence, experts per "
      "token]")("text", po::value<std::string>()->value_name("FILE"),
                "A text, or tokens as in data.train, to evaluate on")(
      "sequence-tokens", po::value<int64_t>()->value_name("N"),
      "Tokens of a row of --text; FILE's data.sequence_tokens, or the model's most")(
      "stride", po::value<int64_t>()->value_name("N"),
      "How far a row of --text begins after the one before; the rest of it is context only")(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "Overrides one key of FILE")(
      "path", po::value<std::vector<std::string>>()->composing()->value_name("FOLDER"),
      "Looks for plugins there first (plugins.path)");
  add_threads_option(line);
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
  const std::string text_file = get(*values, "text");
  const bool is_quiet = terminal_level(*values) > core::LogLevel::Info;
  if (file.empty() && tokens_file.empty() && text_file.empty()) {
    throw line.usage_failure(
        "neither FILE nor --tokens nor --text is given: there is nothing to evaluate on");
  }
  if (!tokens_file.empty() && !text_file.empty()) {
    throw line.usage_failure("--tokens and --text are both given");
  }
  if (text_file.empty() && (values->count("sequence-tokens") + values->count("stride")) != 0) {
    throw line.usage_failure("--sequence-tokens and --stride belong to --text");
  }
  if (tokens_file.empty() && outputs.any()) {
    throw line.usage_failure("--logits, --gradients and --routing belong to --tokens");
  }
  at::set_num_threads(threads_of(line, *values));
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
  if (!text_file.empty()) {
    const int64_t most = model.config().max_position_embeddings;
    const Cut cut = cut_of(line, *values, plan ? plan->config.data.sequence_tokens : most, most);
    loss = run_text(model, open_text(text_file, model, log), cut, is_quiet);
  } else if (tokens_file.empty()) {
    loss = run_validation(model, *plan, is_quiet, log);
  } else {
    const at::Tensor tokens = read_tokens(opener, tokens_file);
    check_tokens(tokens, model.config(), tokens_file);
    loss = run_tokens(model, tokens, outputs, opener);
  }
  std::printf("{\"loss\": %s, \"perplexity\": %s, \"tokens\": %lld, \"model\": %s}\n",
              core::json_number(loss.mean()).c_str(),
              core::json_number(std::exp(loss.mean())).c_str(), static_cast<long long>(loss.tokens),
              nlohmann::json(model.source()).dump().c_str());
  return 0;
}

}  // namespace ciuic::tools
