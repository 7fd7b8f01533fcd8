// SPDX-License-Identifier: MIT
#include "core/plugin/archive_opener.h"

#include <filesystem>
#include <vector>

#include "core/config/plugin_options.h"

namespace ciuic::core {

std::unique_ptr<CheckpointPlugin> ArchiveOpener::create(const FoundPlugin& found,
                                                        const Node* given) const {
  std::vector<Problem> problems;
  const PluginOptions options =
      PluginOptions::from(given, found.descriptor->options,
                          std::string("checkpoint.") + found.descriptor->name, {}, problems);
  if (!problems.empty()) {
    throw Failure(ExitCode::Usage, format(problems));
  }
  return std::make_unique<CheckpointPlugin>(
      found, std::make_unique<HostContext>(found.descriptor->name, log_), options, Placement{});
}

std::unique_ptr<CheckpointPlugin> ArchiveOpener::create(std::string_view name,
                                                        const Node& options) const {
  return create(catalog_.find(CIUIC_KIND_CHECKPOINT, name), &options);
}

OpenArchive ArchiveOpener::open(const std::string& uri) const {
  std::error_code ec;
  if (!std::filesystem::exists(uri, ec)) {
    throw Failure(ExitCode::Storage, "there is no model, checkpoint or tensor file", "",
                  {{"file", uri}});
  }
  std::string asked;
  for (const FoundPlugin& found : catalog_.all_of(CIUIC_KIND_CHECKPOINT)) {
    std::unique_ptr<CheckpointPlugin> plugin = create(found, nullptr);
    if (std::optional<Archive> archive = plugin->open(uri)) {
      return {std::move(plugin), std::move(*archive)};
    }
    asked += std::string(asked.empty() ? "" : ", ") + found.descriptor->name;
  }
  const bool is_run = std::filesystem::exists(uri + "/checkpoints", ec);
  throw Failure(
      ExitCode::Storage,
      "no checkpoint plugin knows this format (asked: " + (asked.empty() ? "none" : asked) + ")",
      is_run ? "this is a run's folder: name one of its checkpoints, or export it first: ciuic "
               "checkpoint convert " +
                   uri + " TARGET --to safetensors"
             : "name a Hugging Face folder, a checkpoint, a run's folder or a .safetensors file",
      {{"file", uri}});
}

}  // namespace ciuic::core
