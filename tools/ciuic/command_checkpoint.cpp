// SPDX-License-Identifier: MIT
//
// ciuic checkpoint list | verify | convert.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <unistd.h>

#include <ciuic/view.hpp>

#include "core/config/quantity.h"
#include "core/plugin/archive_opener.h"
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

void copy_tensor(const core::Archive& from, const core::Archive& to,
                 const core::ArchiveEntry& entry, const std::string& key) {
  std::vector<char> bytes(entry.bytes);
  const Tensor tensor(bytes.data(), entry.dtype, entry.shape);
  const Place place(entry.shape);
  if (!from.get(entry.key, place.c(), tensor.c())) {
    throw Failure(ExitCode::Storage, entry.key + " cannot be read", "", {{"file", from.uri()}});
  }
  to.put(key, place.c(), tensor.c());
}

/// The values of a checkpoint (its masters, where it has both) and its config.json, in another
/// format.
int convert(const core::ArchiveOpener& opener, const std::string& source, const std::string& target,
            const std::string& format) {
  const core::OpenArchive from = opener.open(core::resolve_model_path(source));
  const auto plugin = opener.create(format);
  std::vector<core::ArchiveEntry> chosen;
  std::vector<std::string> keys;
  for (const core::ArchiveEntry& e : from->list()) {
    const bool is_value = e.key.starts_with("value/");
    const bool is_master = e.key.starts_with("master/");
    if ((is_value || is_master) && !e.is_blob) {
      keys.push_back(is_master ? "value/" + e.key.substr(7) : e.key);
      chosen.push_back(e);
    }
  }
  std::vector<core::ArchiveEntry> written = chosen;
  for (size_t i = 0; i < written.size(); ++i) {
    written[i].key = keys[i];
  }
  const std::optional<std::string> config = from->get_blob("config.json");
  if (config) {
    written.push_back({"config.json", true, {}, {}, config->size()});
  }
  const core::Archive to = plugin->begin(target, 0, written);
  for (size_t i = 0; i < chosen.size(); ++i) {
    copy_tensor(*from, to, chosen[i], keys[i]);
  }
  if (config) {
    to.put_blob("config.json", *config);
  }
  to.commit();
  std::printf("%s: %zu tensors\n", target.c_str(), chosen.size());
  return 0;
}

}  // namespace

int checkpoint(const Arguments& arguments) {
  CommandLine line("checkpoint",
                   "ciuic checkpoint list PATH\n       ciuic checkpoint verify PATH\n"
                   "       ciuic checkpoint convert PATH TARGET --to safetensors",
                   "list     shows the checkpoints of a run's folder, or what one holds\n"
                   "verify   reads every byte and compares checksums\n"
                   "convert  exports the weights, for example as a Hugging Face folder",
                   "  ciuic checkpoint list runs/quickstart\n"
                   "  ciuic checkpoint verify runs/quickstart/checkpoints/step-00000100\n"
                   "  ciuic checkpoint convert runs/quickstart exported --to safetensors\n");
  line.options().add_options()("to", po::value<std::string>()->value_name("FORMAT"),
                               "The checkpoint plugin that writes TARGET")(
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
  if (action == "convert") {
    if (get(*values, "target").empty() || values->count("to") == 0) {
      throw line.usage_failure("convert wants TARGET and --to FORMAT");
    }
    return convert(opener, path, get(*values, "target"), get(*values, "to"));
  }
  if (!get(*values, "target").empty() || values->count("to") != 0) {
    throw line.usage_failure(action + " wants one PATH, and no --to");
  }
  return action == "list" ? list(opener, path) : verify(opener, path);
}

}  // namespace ciuic::tools
