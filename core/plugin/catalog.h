// SPDX-License-Identifier: MIT
//
// Finds plugins by kind and name on a search path. Names choose, file names do not: lib<name>.so is
// only where it looks first. Which plugins a file holds is read from its ELF note, so that a run
// runs no code of what it does not use; what it uses goes through the whole pipeline
// (loading_pipeline.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ciuic/abi/plugin.h>

#include "core/plugin/descriptor_info.h"
#include "core/plugin/library_file.h"
#include "core/plugin/load_rules.h"
#include "core/plugin/probe.h"

namespace ciuic::core {

class LoadingPipeline;

/// One plugin that can be used. Its library is not mapped until somebody asks.
struct FoundPlugin {
  std::shared_ptr<const DescriptorInfo> descriptor;
  std::string path;
  bool shadowed = false;  // an earlier folder has one of the same kind and name
  std::shared_ptr<const LibraryFile> file;

  /// The live descriptor: maps the staged copy at the first call. Throws Failure (Plugin), also when
  /// it says something else than it said in the probe.
  [[nodiscard]] const ciuic_descriptor* load() const;
};

/// A file that cannot be used, and why: "load: libfoo.so.1: cannot open ...".
struct RefusedFile {
  std::string path;
  std::string reason;
  std::string remedy;
};

struct Listing {
  std::vector<FoundPlugin> plugins;
  std::vector<RefusedFile> refused;
};

class Catalog {
 public:
  /// Folders in order of preference; relative ones mean the current directory. Throws Failure
  /// (Usage) when the rules name a lock that is none.
  explicit Catalog(std::vector<std::string> folders, LoadRules rules = {});

  /// `plugins.path`, then CIUIC_PLUGIN_PATH (colons) if that is allowed, then beside the binary:
  /// ../plugins, ../lib/ciuic/plugins.
  static std::vector<std::string> search_path(const std::vector<std::string>& configured,
                                              bool allow_environment = true);

  /// Takes all of these through the pipeline at once: one child instead of one each. Says nothing of
  /// what is missing or refused: find() does.
  void prepare(const std::vector<std::pair<uint32_t, std::string>>& wanted) const;

  /// Whether a file on the path says that it has the plugin. Runs no code of it.
  [[nodiscard]] bool offers(uint32_t kind, std::string_view name) const {
    return locate(kind, name) != nullptr;
  }

  /// Throws Failure (Plugin): with the reason if a file of that name is refused, else with every
  /// path tried and every plugin of that kind.
  [[nodiscard]] FoundPlugin find(uint32_t kind, std::string_view name) const;

  /// Every plugin of a kind that can be used, in the order of the path, without shadowed ones.
  [[nodiscard]] std::vector<FoundPlugin> all_of(uint32_t kind) const;

  /// Everything on the path, each file looked at in the child.
  [[nodiscard]] Listing list() const;

  /// One file, as far as it comes: without running any of its code, or with the child.
  [[nodiscard]] std::shared_ptr<const LibraryFile> examine(const std::string& path) const;
  [[nodiscard]] std::shared_ptr<const LibraryFile> look(const std::string& path) const;

  /// The plugins' own checks of their options against each other, in one child. What each refuses;
  /// empty: nothing.
  [[nodiscard]] std::vector<std::string> validate(
      const std::vector<std::pair<const FoundPlugin*, const PluginOptions*>>& plugins,
      const Placement& placement) const;

  [[nodiscard]] const std::vector<std::string>& folders() const noexcept { return folders_; }
  /// Every lib on the path, in order.
  [[nodiscard]] std::vector<std::string> files() const;
  [[nodiscard]] const LoadingPipeline& pipeline() const { return *pipeline_; }

 private:
  /// The file that offers the plugin, examined; nullptr: none does.
  [[nodiscard]] std::shared_ptr<LibraryFile> locate(uint32_t kind, std::string_view name) const;
  [[nodiscard]] Listing list(const std::vector<std::shared_ptr<LibraryFile>>& files) const;

  std::vector<std::string> folders_;
  std::shared_ptr<LoadingPipeline> pipeline_;  // shared by copies: files are looked at once
};

}  // namespace ciuic::core
