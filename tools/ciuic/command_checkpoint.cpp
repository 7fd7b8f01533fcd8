// SPDX-License-Identifier: MIT
//
// ciuic checkpoint list | verify | convert.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <unistd.h>

#include <ciuic/view.hpp>

#include "core/config/quantity.h"
#include "core/plugin/archive_opener.h"
#include "core/train/export_model.h"
#include "core/train/model_tokenizer.h"
#include "core/train/run_folder.h"
#include "tools/ciuic/commands.h"
#include "tools/ciuic/worker_process.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
using core::ExitCode;
using core::Failure;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t s : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(s);
  }
  return text + "]";
}

uint64_t total_bytes(const std::vector<core::ArchiveEntry>& entries) {
  uint64_t bytes = 0;
  for (const core::ArchiveEntry& e : entries) {
    bytes += e.bytes;
  }
  return bytes;
}

/// A run's folder: its checkpoints. Anything else: the tensors inside.
int list(const core::ArchiveOpener& opener, const std::string& path) {
  const auto checkpoints = core::checkpoints_in(path);
  std::optional<Failure> first;
  for (const auto& [step, checkpoint] : checkpoints) {
    try {
      const core::OpenArchive archive = opener.open(checkpoint);
      const auto entries = archive->list();
      std::printf("step %8llu  %6zu entries  %9.1f MiB  %s\n",
                  static_cast<unsigned long long>(step), entries.size(),
                  static_cast<double>(total_bytes(entries)) / (1 << 20), checkpoint.c_str());
    } catch (const Failure& failure) {
      std::printf("step %8llu  DAMAGED  %s\n", static_cast<unsigned long long>(step),
                  checkpoint.c_str());
      first = first ? first : std::optional(failure);
    }
  }
  if (first) {
    throw *first;
  }
  if (!checkpoints.empty()) {
    return 0;
  }
  const core::OpenArchive archive = opener.open(core::resolve_model_path(path));
  for (const core::ArchiveEntry& e : archive->list()) {
    std::printf("%-9s %-16s %12llu  %s\n", e.is_blob ? "blob" : dtype_name(e.dtype).c_str(),
                e.is_blob ? "" : shape_text(e.shape).c_str(),
                static_cast<unsigned long long>(e.bytes), e.key.c_str());
  }
  return 0;
}

/// Every checkpoint of a run's folder, or one archive. All are looked at before a failure is
/// reported.
int verify(const core::ArchiveOpener& opener, const std::string& path) {
  auto targets = core::checkpoints_in(path);
  if (targets.empty()) {
    targets.emplace_back(0, core::resolve_model_path(path));
  }
  std::optional<Failure> first;
  for (const auto& [step, target] : targets) {
    try {
      const core::OpenArchive archive = opener.open(target);
      archive->verify();
      std::printf("%s: ok, %zu entries\n", target.c_str(), archive->list().size());
    } catch (const Failure& failure) {
      std::printf("%s: DAMAGED: %s\n", target.c_str(), failure.what());
      first = first ? first : std::optional(failure);
    }
  }
  if (first) {
    throw *first;
  }
  return 0;
}

/// The options of the plugin that writes, from the command line.
core::Node plugin_options(const po::variables_map& values) {
  core::Node options{core::Node::Table{}, {}, {}};
  if (values.count("dtype") != 0) {
    const std::string dtype = get(values, "dtype");
    options.set("dtype", core::Node{dtype == "fp8" ? "fp8_block" : dtype, {"--dtype", 0}, {}});
  }
  if (values.count("max-file-size") != 0) {
    options.set("max_file_size",
                core::Node{get(values, "max-file-size"), {"--max-file-size", 0}, {}});
  }
  return options;
}

}  // namespace

int checkpoint(const Arguments& arguments) {
  CommandLine line(
      "checkpoint",
      "ciuic checkpoint list PATH\n       ciuic checkpoint verify PATH\n"
      "       ciuic checkpoint convert PATH TARGET --to safetensors\n"
      "               [--dtype bf16|fp32|fp8] [--max-file-size SIZE]",
      "list     shows the checkpoints of a run's folder, or what one holds\n"
      "verify   reads every byte and compares checksums\n"
      "convert  exports the weights of a run's folder (its latest checkpoint), a\n"
      "         checkpoint or a Hugging Face folder: as they are stored, or as --dtype\n"
      "         says. fp8 is DeepSeek's: e4m3fn with a scale per 128 x 128 block",
      "  ciuic checkpoint list runs/quickstart\n"
      "  ciuic checkpoint verify runs/quickstart/checkpoints/step-00000100\n"
      "  ciuic checkpoint convert runs/quickstart exported --to safetensors\n"
      "  ciuic checkpoint convert runs/quickstart exported --to safetensors --dtype "
      "bf16\n");
  line.options().add_options()("to", po::value<std::string>()->value_name("FORMAT"),
                               "The checkpoint plugin that writes TARGET")(
      "dtype", po::value<std::string>()->value_name("TYPE"),
      "Element type to write: bf16, fp32 or fp8; default as stored (the plugin's option dtype)")(
      "max-file-size", po::value<std::string>()->value_name("SIZE"),
      "Most data in one file, such as 5GB (the plugin's option max_file_size)")(
      "path", po::value<std::vector<std::string>>()->composing()->value_name("FOLDER"),
      "Looks for plugins there first (plugins.path)");
  add_log_options(line);
  line.positional("action", 1);
  line.positional("archive", 1);
  line.positional("target", 1);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  quieten_libtorch();
  core::Log log({0, 1, terminal_level(*values), "", has_color(STDERR_FILENO)});
  const core::Catalog catalog(core::Catalog::search_path(folders_of(*values, "path")));
  const core::ArchiveOpener opener(catalog, log);
  const std::string action = get(*values, "action");
  const std::string path = get(*values, "archive");
  if (action != "list" && action != "verify" && action != "convert") {
    throw line.usage_failure("got \"" + action + "\", expected list, verify or convert");
  }
  if (path.empty()) {
    throw line.usage_failure("no PATH is given");
  }
  if (action != "convert" &&
      values->count("to") + values->count("dtype") + values->count("max-file-size") != 0) {
    throw line.usage_failure("--to, --dtype and --max-file-size belong to convert");
  }
  if (action == "convert") {
    if (get(*values, "target").empty() || values->count("to") == 0) {
      throw line.usage_failure("convert wants TARGET and --to FORMAT");
    }
    const std::string target = get(*values, "target");
    const core::OpenArchive from = opener.open(core::resolve_model_path(path));
    const auto plugin = opener.create(get(*values, "to"), plugin_options(*values));
    const size_t tensors = core::export_model(*from, *plugin, target);
    std::error_code error;
    if (const auto tokenizer = core::tokenizer_of_model(from->uri());
        tokenizer && std::filesystem::is_directory(target, error)) {
      core::keep_tokenizer(*tokenizer, target);
    }
    std::printf("%s: %zu tensors\n", target.c_str(), tensors);
    return 0;
  }
  if (!get(*values, "target").empty() || values->count("to") != 0) {
    throw line.usage_failure(action + " wants one PATH, and no --to");
  }
  return action == "list" ? list(opener, path) : verify(opener, path);
}

}  // namespace ciuic::tools
