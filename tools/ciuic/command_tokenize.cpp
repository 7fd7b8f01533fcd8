// SPDX-License-Identifier: MIT
//
// ciuic tokenize: text and .jsonl as Megatron's .bin and .idx, with all cores.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/data/find_files.h"
#include "core/data/mapped_file.h"
#include "core/data/megatron_writer.h"
#include "core/data/tokenize_file.h"
#include "core/data/tokenizing_progress.h"
#include "core/launch/environment.h"
#include "tools/ciuic/commands.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
using core::ExitCode;
using core::Failure;

CommandLine command_line() {
  CommandLine line(
      "tokenize", "ciuic tokenize IN... --tokenizer PATH --output PREFIX [--append-eos]",
      "Writes the tokens of texts and .jsonl files (\"text\" in each line) to PREFIX.bin "
      "and PREFIX.idx,\n"
      "as Megatron's tools do, for data.train. A text file, and a line of a .jsonl, is "
      "one document.\n"
      "Both files appear when they are whole.",
      "  ciuic tokenize corpus/*.jsonl --tokenizer hf/dir --output corpus --append-eos\n"
      "  ciuic tokenize book.txt --tokenizer tokenizer.json --output book --threads 4\n");
  line.options().add_options()("tokenizer", po::value<std::string>()->value_name("PATH"),
                               "A Hugging Face tokenizer.json, or a folder with one")(
      "output", po::value<std::string>()->value_name("PREFIX"), "Writes PREFIX.bin and PREFIX.idx")(
      "append-eos", "Ends each document with the eos token")(
      "eos", po::value<std::string>()->value_name("TOKEN"),
      "Which token that is; default: the eos_token of the tokenizer_config.json beside, else "
      "<｜end▁of▁sentence｜> or <|endoftext|>")("quiet,q", "Shows errors only");
  add_threads_option(line);
  line.positional("in", -1);
  return line;
}

/// The eos_token of tokenizer_config.json: a string, or an object with its content.
std::string configured_eos(const core::Tokenizer& tokenizer) {
  const auto beside =
      std::filesystem::path(tokenizer.file()).replace_filename("tokenizer_config.json");
  std::ifstream file(beside);
  const nlohmann::json config = nlohmann::json::parse(file, nullptr, false);
  const nlohmann::json eos =
      config.is_object() ? config.value("eos_token", nlohmann::json()) : nlohmann::json();
  return eos.is_string()   ? eos.get<std::string>()
         : eos.is_object() ? eos.value("content", std::string())
                           : "";
}

int32_t eos_of(const core::Tokenizer& tokenizer, const std::string& given) {
  for (const std::string& name :
       given.empty() ? std::vector<std::string>{configured_eos(tokenizer), "<｜end▁of▁sentence｜>",
                                                "<|endoftext|>"}
                     : std::vector<std::string>{given}) {
    if (const auto id = tokenizer.id_of(name)) {
      return *id;
    }
  }
  throw Failure(ExitCode::Usage,
                given.empty() ? tokenizer.file() + " has no eos token that is known"
                              : "--eos: " + tokenizer.file() + " has no added token " + given,
                "name it: --eos TOKEN");
}

/// One line that is written over again, on a terminal only.
class Line {
 public:
  explicit Line(bool is_quiet) : is_shown_(!is_quiet && isatty(STDERR_FILENO) != 0) {}
  ~Line() {
    if (is_shown_ && width_ > 0) {
      std::fprintf(stderr, "\r%*s\r", width_, "");
    }
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void show(const std::string& text) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_shown_ || now < next_) {
      return;
    }
    next_ = now + std::chrono::milliseconds(200);
    std::fprintf(stderr, "\r%-*s", width_, text.c_str());
    std::fflush(stderr);
    width_ = static_cast<int>(text.size());
  }

 private:
  bool is_shown_;
  int width_ = 0;
  std::chrono::steady_clock::time_point next_{};
};

void refuse_tokens(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (core::kind_of_file(file) == core::FileKind::Tokens) {
      throw Failure(ExitCode::Usage, file + " holds tokens already", "", {{"file", file}});
    }
  }
}

}  // namespace

int tokenize(const Arguments& arguments) {
  CommandLine line = command_line();
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  const std::string prefix = get(*values, "output");
  for (const char* name : {"tokenizer", "output"}) {
    if (get(*values, name).empty()) {
      throw line.usage_failure(std::string("no --") + name + " is given");
    }
  }
  if (values->count("in") == 0) {
    throw line.usage_failure("no file is given");
  }
  const int threads = threads_of(line, *values);
  const bool appends_eos = values->count("append-eos") != 0;
  if (!appends_eos && values->count("eos") != 0) {
    throw line.usage_failure("--eos has no effect without --append-eos");
  }
  const std::vector<std::string> files = core::find_files(get_all(*values, "in"), "ciuic tokenize");
  refuse_tokens(files);
  const core::Tokenizer tokenizer = core::Tokenizer::open(get(*values, "tokenizer"));
  core::TokenizeRequest request;
  request.tokenizer = &tokenizer;
  request.eos = appends_eos ? eos_of(tokenizer, get(*values, "eos")) : -1;
  request.appends_eos = appends_eos;
  request.allows_masks = false;
  request.threads = threads;

  int64_t total = 0;
  for (const std::string& file : files) {
    total += static_cast<int64_t>(core::MappedFile(file, "leave it out").bytes().size());
  }
  core::MegatronWriter writer(prefix, tokenizer.num_ids());
  const bool is_quiet = values->count("quiet") != 0;
  {
    Line shown(is_quiet);
    const core::TokenizingProgress progress(prefix, total);
    int64_t before = 0;
    for (const std::string& file : files) {
      const core::MappedFile content(file, "leave it out");
      request.file = file;
      tokenize_file(request, content.bytes(),
                    {[&](std::span<const int32_t> tokens) { writer.add(tokens); },
                     [&] { writer.end_document(); },
                     [&](int64_t bytes) { shown.show(progress.text(before + bytes)); }});
      before += static_cast<int64_t>(content.bytes().size());
    }
    if (writer.num_tokens() == 0) {
      throw Failure(ExitCode::Usage, "there is no text in the files", "give others");
    }
    writer.publish();
  }
  if (!is_quiet) {
    std::printf("%s.bin: %lld tokens of %d bits in %lld documents\n", prefix.c_str(),
                static_cast<long long>(writer.num_tokens()), writer.is_wide() ? 32 : 16,
                static_cast<long long>(writer.num_documents()));
  }
  return 0;
}

}  // namespace ciuic::tools
