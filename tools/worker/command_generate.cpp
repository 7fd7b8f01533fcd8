// SPDX-License-Identifier: MIT
//
// ciuic generate: continues a prompt, token by token. The whole context is computed again for each
// token; the cached form comes with the latent cache of a later version.
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <unistd.h>

#include <ATen/Parallel.h>
#include <ATen/ops/tensor.h>

#include "core/config/utf8.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/launch/environment.h"
#include "core/train/loaded_model.h"
#include "core/train/model_tokenizer.h"
#include "core/train/run_data.h"
#include "tools/worker/commands.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
using core::ExitCode;
using core::Failure;

/// Text to tokens and back, as the model knows them.
class Words {
 public:
  Words(const core::LoadedModel& model, const core::TokenIds& ids) : eos_(ids.eos) {
    if (const auto file = core::tokenizer_of_model(model.source())) {
      tokenizer_.emplace(core::Tokenizer::open(*file));
    }
    const int64_t num_ids = tokenizer_ ? tokenizer_->num_ids() : 256;
    if (ids.vocab_size < num_ids) {
      throw Failure(ExitCode::Usage,
                    tokenizer_ ? "this model's vocabulary is smaller than its tokenizer's"
                               : "this model's vocabulary is too small for the byte tokenizer",
                    "", {{"file", model.source()}});
    }
  }

  [[nodiscard]] std::vector<int64_t> tokens(const std::string& text) const {
    if (!tokenizer_) {
      return {reinterpret_cast<const unsigned char*>(text.data()),
              reinterpret_cast<const unsigned char*>(text.data()) + text.size()};
    }
    if (!core::is_utf8(text)) {
      throw Failure(ExitCode::Usage, "--prompt: it is not UTF-8");
    }
    std::vector<int32_t> tokens;
    core::Encoder(*tokenizer_).encode(text, tokens);
    return {tokens.begin(), tokens.end()};
  }

  [[nodiscard]] std::string text(int64_t token) const {
    return tokenizer_ ? std::string(tokenizer_->bytes(token))
                      : std::string(1, static_cast<char>(token));
  }

  /// A vocabulary may have places for tokens that there are none of.
  [[nodiscard]] bool is_allowed(int64_t token) const {
    return token == eos_ || (tokenizer_ ? !tokenizer_->bytes(token).empty() : token < 256);
  }

 private:
  int64_t eos_;
  std::optional<core::Tokenizer> tokenizer_;
};

/// Samples from softmax(logits / temperature) over the tokens that have a text, and eos; temperature
/// 0 takes the most likely.
int64_t sample(const at::Tensor& logits_V, double temperature, const Words& words,
               std::mt19937_64& random) {
  const at::Tensor wide = logits_V.to(at::kDouble).contiguous();
  const double* logit = wide.const_data_ptr<double>();
  const auto is_allowed = [&words](int64_t token) { return words.is_allowed(token); };
  int64_t best = 0;
  while (best + 1 < wide.numel() && !is_allowed(best)) {
    ++best;
  }
  for (int64_t t = 0; t < wide.numel(); ++t) {
    best = is_allowed(t) && logit[t] > logit[best] ? t : best;
  }
  if (temperature == 0) {
    return best;
  }
  std::vector<double> weight(static_cast<size_t>(wide.numel()), 0.0);
  for (int64_t t = 0; t < wide.numel(); ++t) {
    weight[static_cast<size_t>(t)] =
        is_allowed(t) ? std::exp((logit[t] - logit[best]) / temperature) : 0.0;
  }
  return std::discrete_distribution<int64_t>(weight.begin(), weight.end())(random);
}

struct Request {
  std::string prompt;
  int max_tokens;
  double temperature;
  uint64_t seed;
};

void check(const CommandLine& line, const Request& request) {
  if (request.max_tokens < 0) {
    throw line.usage_failure("--max-tokens: got " + std::to_string(request.max_tokens) +
                             ", expected 0 or more");
  }
  if (!(request.temperature >= 0) || !std::isfinite(request.temperature)) {
    throw line.usage_failure("--temperature: expected 0 or more");
  }
}

void write_text(core::LoadedModel& model, const Request& request) {
  const core::TokenIds ids = core::token_ids(model.config());
  const Words words(model, ids);
  std::vector<int64_t> tokens = words.tokens(request.prompt);
  if (tokens.empty()) {
    tokens = ids.bos >= 0 ? std::vector<int64_t>{ids.bos} : words.tokens(" ");
  }
  const auto most = static_cast<size_t>(model.config().max_position_embeddings);
  std::mt19937_64 random(request.seed);
  std::fwrite(request.prompt.data(), 1, request.prompt.size(), stdout);
  for (int i = 0; i < request.max_tokens; ++i) {
    // A context longer than the model's positions keeps its end.
    const size_t first = tokens.size() > most ? tokens.size() - most : 0;
    const at::Tensor context =
        at::tensor(at::ArrayRef<int64_t>(tokens).slice(first), at::kLong).unsqueeze(0);
    const at::Tensor logits = model.logits(context, true).reshape({-1});
    const int64_t token = sample(logits, request.temperature, words, random);
    if (token == ids.eos) {
      break;
    }
    tokens.push_back(token);
    const std::string text = words.text(token);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  std::fputc('\n', stdout);
}

}  // namespace

int generate(const Arguments& arguments) {
  CommandLine line("generate",
                   "ciuic generate --model DIR --prompt TEXT [--max-tokens N] [--temperature T]",
                   "Continues TEXT with the model in DIR: a run's folder (its latest checkpoint), "
                   "a checkpoint or a\n"
                   "Hugging Face folder.",
                   "  ciuic generate --model runs/quickstart --prompt \"In the beginning\"\n"
                   "  ciuic generate --model runs/quickstart --prompt \"And God\" --temperature 0 "
                   "--max-tokens 50\n");
  line.options().add_options()("model", po::value<std::string>()->value_name("DIR"),
                               "Where the weights are")(
      "prompt", po::value<std::string>()->default_value("")->value_name("TEXT"),
      "What to continue")("max-tokens", po::value<int>()->default_value(200)->value_name("N"),
                          "How many tokens at the most")(
      "temperature", po::value<double>()->default_value(0.8, "0.8")->value_name("T"),
      "0: always the most likely token")(
      "seed", po::value<uint64_t>()->default_value(1234)->value_name("N"), "Of the sampling")(
      "path", po::value<std::vector<std::string>>()->composing()->value_name("FOLDER"),
      "Looks for plugins there first (plugins.path)");
  add_log_options(line);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  if (values->count("model") == 0) {
    throw line.usage_failure("no --model is given");
  }
  const Request request{get(*values, "prompt"), (*values)["max-tokens"].as<int>(),
                        (*values)["temperature"].as<double>(), (*values)["seed"].as<uint64_t>()};
  check(line, request);
  at::set_num_threads(core::usable_cores());
  core::Log log({0, 1, terminal_level(*values), "", has_color(STDERR_FILENO)});
  const core::Catalog catalog(core::Catalog::search_path(folders_of(*values, "path")));
  core::LoadedModel model(get(*values, "model"), core::ArchiveOpener(catalog, log), {}, false);
  for (const std::string& note : model.notes()) {
    log.info(model.source() + ": " + note);
  }
  write_text(model, request);
  return 0;
}

}  // namespace ciuic::tools
