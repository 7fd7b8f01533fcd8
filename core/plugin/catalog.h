// SPDX-License-Identifier: MIT
//
// Finds plugins by kind and name on a search path. Names choose, file names do not: lib<name>.so is
// only where it looks first, so that a run does not map what it does not use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/plugin.h>

namespace ciuic::core {

/// One plugin that can be used.
struct FoundPlugin {
  const ciuic_descriptor* descriptor = nullptr;
  std::string path;
  bool shadowed = false;  // an earlier folder has one of the same kind and name
};

/// A file that cannot be used, and why: "load: libfoo.so.1: cannot open ...".
struct RefusedFile {
  std::string path;
  std::string reason;
};

struct Listing {
  std::vector<FoundPlugin> plugins;
  std::vector<RefusedFile> refused;
};

class Catalog {
 public:
  /// Folders in order of preference; relative ones mean the current directory.
  explicit Catalog(std::vector<std::string> folders);

  /// `plugins.path`, then CIUIC_PLUGIN_PATH (colons), then beside the binary: ../plugins,
  /// ../lib/ciuic/plugins.
  static std::vector<std::string> search_path(const std::vector<std::string>& configured);

  /// Throws Failure (Plugin): with the reason if a file of that name is refused, else with every
  /// path tried and every plugin of that kind.
  [[nodiscard]] FoundPlugin find(uint32_t kind, std::string_view name) const;

  /// Everything on the path, each file mapped and checked.
  [[nodiscard]] Listing list() const;

  [[nodiscard]] const std::vector<std::string>& folders() const noexcept { return folders_; }

 private:
  std::vector<std::string> folders_;
};

}  // namespace ciuic::core
