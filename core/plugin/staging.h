// SPDX-License-Identifier: MIT
//
// Private copies of plugins, from which they are loaded: what was judged and hashed is what runs,
// and whatever happens to the original during a run does not matter.
//
// A copy is a folder named by the SHA-256 of its content and the plugin's file name, made beside its
// place and renamed into it, never changed afterwards. A plugin that finds private dependencies through $ORIGIN is copied with
// them, each at the same place relative to it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/plugin/elf_file.h"
#include "core/plugin/trusted_file.h"

namespace ciuic::core {

/// One dependency beside a plugin, found through $ORIGIN.
struct BundledFile {
  std::string path;      // of the original
  std::string relative;  // to the bundle's root
  std::vector<std::byte> bytes;
  size_t size = 0;
  bool is_linked = false;  // too large to copy: the staged name is a link to the original
};

/// A plugin and what it brings along.
struct Bundle {
  std::string digest;    // of everything; the plugin's own hash when it brings nothing
  std::string locked;    // the same, wherever it lies: what stays in place counts by its size
  std::string relative;  // the plugin's own place below the root
  std::vector<BundledFile> dependencies;
};

/// The largest library that is read, hashed and copied.
inline constexpr size_t kMaxLibraryBytes = size_t{256} << 20;

/// Dependencies that `path` and those dependencies find through $ORIGIN. Each passes the trust rule.
/// Throws ElfError when one is damaged or not trusted, or when there are more than 64.
Bundle bundle_of(const std::string& path, const ElfFile& file, const std::string& hash, Trust rule,
                 const TrustContext& context);

class StagingArea {
 public:
  /// `folder` is private already (make_private_folder).
  explicit StagingArea(std::string folder) : folder_(std::move(folder)) {}

  /// The path of the staged plugin. An earlier copy is used when its bytes are the same. Throws
  /// Failure (Environment) when it cannot be written.
  [[nodiscard]] std::string stage(const Bundle& bundle, std::span<const std::byte> bytes) const;

  /// Removes copies that were not used for a day, the oldest first, while all together are larger
  /// than `limit`.
  void remove_old(size_t limit) const;

 private:
  [[nodiscard]] bool is_intact(const std::string& root, const Bundle& bundle,
                               std::span<const std::byte> bytes) const;
  void write(const std::string& root, const Bundle& bundle, std::span<const std::byte> bytes) const;

  std::string folder_;
};

}  // namespace ciuic::core
