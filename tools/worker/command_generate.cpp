// SPDX-License-Identifier: MIT
//
// ciuic generate: continues a prompt, or talks with a person at a terminal. The text goes to stdout
// as it comes, everything else to stderr.
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>
#include <unistd.h>
#include <utility>

#include <ATen/Parallel.h>

#include "core/config/plain_file.h"
#include "core/config/utf8.h"
#include "core/generate/generator.h"
#include "core/train/model_tokenizer.h"
#include "core/train/run_data.h"
#include "tools/worker/commands.h"
#include "tools/worker/terminal_prompt.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
using core::ExitCode;
using core::Failure;
using core::Generator;

/// More than any context holds: what is longer is a mistake, or has no end.
constexpr size_t kMostPromptBytes = size_t{64} << 20;

struct Options {
  Generator::Request request;
  bool has_max_tokens = false;  // given, and not the default
  uint64_t seed = 0;
  bool is_quiet = false;
};

CommandLine command_line() {
  CommandLine line("generate",
                   "ciuic generate --model DIR [--prompt TEXT|-] [--max-tokens N] "
                   "[--temperature T]\n       [--top-k N] [--top-p P] [--stop TEXT]... [--seed N]",
                   "Continues TEXT with the model in DIR: a run's folder (its latest checkpoint), "
                   "a checkpoint or a\n"
                   "Hugging Face folder. The text ends at an end-of-text token, a stop text or "
                   "after N tokens.\n"
                   "Without a prompt, on a terminal: asks for one line after another.",
                   "  ciuic generate --model runs/quickstart --prompt \"In the beginning\"\n"
                   "  ciuic generate --model runs/quickstart --prompt \"And God\" --temperature 0 "
                   "--max-tokens 50\n"
                   "  ciuic generate --model runs/quickstart --prompt-file start.txt --top-p 0.9 "
                   "--stop \".\"\n"
                   "  ciuic generate --model runs/quickstart\n");
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  line.options().add_options()("model", text("DIR"), "Where the weights are")(
      "prompt", text("TEXT"), "What to continue; -: stdin, to its end")(
      "prompt-file", text("FILE"), "What to continue, from a file")(
      "max-tokens", po::value<int64_t>()->default_value(200)->value_name("N"),
      "How many tokens at the most")(
      "temperature", po::value<double>()->default_value(0.8, "0.8")->value_name("T"),
      "0: always the most likely token")("top-k",
                                         po::value<int64_t>()->default_value(0)->value_name("N"),
                                         "Chooses among the N most likely tokens; 0: among all")(
      "top-p", po::value<double>()->default_value(1.0, "1")->value_name("P"),
      "Chooses among the fewest tokens with probability P together")(
      "stop", po::value<std::vector<std::string>>()->composing()->value_name("TEXT"),
      "Ends before TEXT; may be given often")(
      "seed", po::value<int64_t>()->default_value(1234)->value_name("N"), "Of the sampling")(
      "path", po::value<std::vector<std::string>>()->composing()->value_name("FOLDER"),
      "Looks for plugins there first (plugins.path)");
  add_threads_option(line);
  add_log_options(line);
  return line;
}

Options options_of(const CommandLine& line, const po::variables_map& values) {
  Options options;
  options.request.max_tokens = values["max-tokens"].as<int64_t>();
  options.has_max_tokens = !values["max-tokens"].defaulted();
  options.request.sampling = {values["temperature"].as<double>(), values["top-k"].as<int64_t>(),
                              values["top-p"].as<double>()};
  options.request.stops = get_all(values, "stop");
  const int64_t seed = values["seed"].as<int64_t>();
  options.seed = static_cast<uint64_t>(seed);
  options.is_quiet = terminal_level(values) > core::LogLevel::Info;

  const auto require = [&](bool holds, const std::string& name, const auto& got,
                           const std::string& expected) {
    if (!holds) {
      std::ostringstream what;
      what << name << ": got " << got << ", expected " << expected;
      throw line.usage_failure(what.str());
    }
  };
  const core::Sampling& s = options.request.sampling;
  require(options.request.max_tokens >= 0, "--max-tokens", options.request.max_tokens, "0 or more");
  require(seed >= 0, "--seed", seed, "0 or more");
  require(s.temperature >= 0 && std::isfinite(s.temperature), "--temperature", s.temperature,
          "0 or more");
  require(s.top_k >= 0, "--top-k", s.top_k, "0 (all) or more");
  require(s.top_p > 0 && s.top_p <= 1, "--top-p", s.top_p, "more than 0, at most 1");
  for (const std::string& stop : options.request.stops) {
    require(!stop.empty(), "--stop", "\"\"", "a text");
  }
  return options;
}

/// Nothing: ask a person.
std::optional<std::string> prompt_of(const CommandLine& line, const po::variables_map& values) {
  const bool has_text = values.count("prompt") != 0;
  const std::string file = get(values, "prompt-file");
  if (has_text && values.count("prompt-file") != 0) {
    throw line.usage_failure("--prompt and --prompt-file are both given");
  }
  std::string text = get(values, "prompt");
  std::string origin = "--prompt";
  if (values.count("prompt-file") != 0) {
    core::PlainFile read = core::read_plain_file(file, kMostPromptBytes);
    if (!read.problem.empty()) {
      throw Failure(ExitCode::Storage, "--prompt-file: " + file + " " + read.problem, "",
                    {{"file", file}});
    }
    text = std::move(read.bytes);
    origin = file;
  } else if (has_text && text == "-") {
    text = read_stdin(kMostPromptBytes);
    origin = "stdin";
  } else if (!has_text) {
    if (isatty(STDIN_FILENO) != 0) {
      return std::nullopt;
    }
    throw Failure(ExitCode::Usage, "no prompt is given, and stdin is no terminal",
                  "give --prompt TEXT, or --prompt - to read it from stdin");
  }
  if (const size_t at = core::first_invalid_utf8(text); at != text.size()) {
    throw Failure(ExitCode::Usage,
                  origin + ": the prompt is not UTF-8 at byte " + std::to_string(at),
                  "convert it, as with iconv -t UTF-8");
  }
  return text;
}

std::string end_text(const Generator::Result& result, const Generator& generator) {
  switch (result.end) {
    case Generator::End::MaxTokens:
      return "all tokens asked for";
    case Generator::End::EndOfText:
      return "end of text";
    case Generator::End::StopText:
      return "stop text";
    case Generator::End::Interrupted:
      return "interrupted";
    case Generator::End::ContextFull:
      break;
  }
  return "the context is full, " + std::to_string(generator.most_tokens()) +
         " tokens (max_position_embeddings)";
}

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

/// Of several tokens; the first comes out of the prompt's pass and says nothing of a rate.
std::string rate_text(const Generator::Result& result) {
  if (result.generated_tokens < 2) {
    return "";
  }
  char text[48];
  std::snprintf(text, sizeof(text), ", %.1f tokens/s",
                rate(result.generated_tokens, result.generation_seconds));
  return text;
}

void show_summary(const Generator::Result& result, const Generator& generator) {
  constexpr double kMebibyte = 1 << 20;
  std::fprintf(
      stderr,
      "prompt %lld tokens, %.0f tokens/s; generated %lld%s; cache %.2f MiB, "
      "%lld of %lld tokens; %s\n",
      static_cast<long long>(result.prompt_tokens),
      rate(result.prompt_tokens, result.prompt_seconds),
      static_cast<long long>(result.generated_tokens), rate_text(result).c_str(),
      static_cast<double>(generator.cache_bytes()) / kMebibyte,
      static_cast<long long>(std::min(generator.context_tokens(), generator.most_tokens())),
      static_cast<long long>(generator.most_tokens()), end_text(result, generator).c_str());
}

/// The last token is never read again: it needs no position.
void check_length(const Generator& generator, const Options& options) {
  const int64_t prompt = std::max<int64_t>(generator.context_tokens(), 1);
  const int64_t most = generator.most_tokens();
  const std::string model =
      ", and the model has " + std::to_string(most) + " positions (max_position_embeddings)";
  if (prompt > most) {
    throw Failure(ExitCode::Usage,
                  "the prompt is too long: got " + std::to_string(prompt) + " tokens" + model,
                  "give a shorter one");
  }
  const int64_t room = most - prompt + 1;
  if (options.has_max_tokens && options.request.max_tokens > room) {
    throw Failure(ExitCode::Usage,
                  "--max-tokens: got " + std::to_string(options.request.max_tokens) +
                      " after a prompt of " + std::to_string(prompt) + " tokens" + model,
                  "use at most " + std::to_string(room) + ", or a shorter prompt");
  }
}

void generate_once(Generator& generator, const std::string& prompt, const Options& options) {
  generator.add(prompt);
  check_length(generator, options);
  write_stdout(prompt);
  const Generator::Result result =
      generator.generate(options.request, &write_stdout, [] { return false; });
  write_stdout("\n");
  if (!options.is_quiet) {
    show_summary(result, generator);
  }
}

constexpr const char* kHelp =
    "Type a line; the model continues it. /reset: forget all, /quit or Ctrl-D: end, Ctrl-C: stop "
    "the text, /help: this line\n";

/// False: the end.
bool obey(const std::string& command, Generator& generator) {
  if (command == "/quit") {
    return false;
  }
  if (command == "/reset") {
    generator.reset();
    std::fputs("the context is empty\n", stderr);
  } else {
    if (command != "/help") {
      std::fprintf(stderr, "there is no %s\n", command.c_str());
    }
    std::fputs(kHelp, stderr);
  }
  return true;
}

/// The context is one text: what was typed and what came, a line's end between two turns.
void talk(Generator& generator, const Options& options) {
  const InterruptRequest interrupt;
  if (!options.is_quiet) {
    std::fputs(kHelp, stderr);
  }
  while (const std::optional<std::string> line = read_line("> ")) {
    if (line->empty()) {
      continue;
    }
    if (line->front() == '/') {
      if (!obey(*line, generator)) {
        return;
      }
      continue;
    }
    if (!core::is_utf8(*line)) {
      std::fputs("the line is not UTF-8 and was not taken\n", stderr);
      continue;
    }
    generator.add((generator.context_tokens() > 0 ? "\n" : "") + *line);
    InterruptRequest::clear();
    const Generator::Result result =
        generator.generate(options.request, &write_stdout, &InterruptRequest::is_raised);
    InterruptRequest::clear();
    write_stdout("\n");
    if (!options.is_quiet) {
      show_summary(result, generator);
    }
    if (result.end == Generator::End::ContextFull) {
      std::fprintf(stderr, "%s; /reset begins a new one\n", end_text(result, generator).c_str());
    }
  }
}

/// A token of a small model is done about as soon as a second thread has woken; and where other
/// programs want the cores, waiting for it costs many times as much.
bool is_too_small_to_share(const core::ModelConfig& model) {
  constexpr int64_t kActiveParameters = 4'000'000;
  return core::count_active_parameters(model) < kActiveParameters;
}

}  // namespace

int generate(const Arguments& arguments) {
  CommandLine line = command_line();
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  if (values->count("model") == 0) {
    throw line.usage_failure("no --model is given");
  }
  const Options options = options_of(line, *values);
  const std::optional<std::string> prompt = prompt_of(line, *values);
  at::set_num_threads(threads_of(line, *values));
  core::Log log({0, 1, terminal_level(*values), "", has_color(STDERR_FILENO)});
  const core::Catalog catalog(core::Catalog::search_path(folders_of(*values, "path")));
  core::LoadedModel model(get(*values, "model"), core::ArchiveOpener(catalog, log), {}, false);
  if ((*values)["threads"].as<int>() == 0 && is_too_small_to_share(model.config())) {
    at::set_num_threads(1);
  }
  for (const std::string& note : model.notes()) {
    log.info(model.source() + ": " + note);
  }
  const auto codec = core::text_codec(core::token_ids(model.config()), model.source(),
                                      core::tokenizer_of_model(model.source()));
  Generator generator(model, *codec, options.seed);
  if (prompt) {
    generate_once(generator, *prompt, options);
  } else {
    talk(generator, options);
  }
  return 0;
}

}  // namespace ciuic::tools
