// SPDX-License-Identifier: MIT
//
// ciuic generate: continues a prompt, byte by byte. The whole context is computed again for each
// token; the cached form comes with the latent cache of a later version.
#include <cmath>
#include <cstdio>
#include <random>
#include <unistd.h>

#include <ATen/Parallel.h>
#include <ATen/ops/tensor.h>

#include "core/launch/environment.h"
#include "core/train/loaded_model.h"
#include "core/train/run_data.h"
#include "tools/worker/commands.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
using core::ExitCode;
using core::Failure;

/// Samples from softmax(logits / temperature) over the byte tokens and eos; temperature 0 takes the
/// most likely.
int64_t sample(const at::Tensor& logits_V, double temperature, int64_t eos,
               std::mt19937_64& random) {
  const at::Tensor wide = logits_V.to(at::kDouble).contiguous();
  const double* logit = wide.const_data_ptr<double>();
  const auto is_allowed = [eos](int64_t token) { return token < 256 || token == eos; };
  int64_t best = 0;
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
  if (ids.vocab_size < 256) {
    throw Failure(ExitCode::Usage, "this model's vocabulary is too small for the byte tokenizer",
                  "", {{"file", model.source()}});
  }
  std::vector<int64_t> tokens(request.prompt.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<unsigned char>(request.prompt[i]);
  }
  if (tokens.empty()) {
    tokens.push_back(ids.bos >= 0 ? ids.bos : ' ');
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
    const int64_t token = sample(logits, request.temperature, ids.eos, random);
    if (token == ids.eos) {
      break;
    }
    tokens.push_back(token);
    std::fputc(static_cast<int>(token), stdout);
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
