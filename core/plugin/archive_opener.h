// SPDX-License-Identifier: MIT
//
// Opens whatever tensor files a person names, by the first checkpoint plugin on the path that knows
// them. Core itself parses no tensor file. Each archive is opened by an instance of its own, as one
// rank.
#pragma once

#include <memory>
#include <string>

#include "core/config/node.h"
#include "core/plugin/checkpoint.h"

namespace ciuic::core {

class OpenArchive {
 public:
  OpenArchive(std::unique_ptr<CheckpointPlugin> plugin, Archive archive)
      : plugin_(std::move(plugin)), archive_(std::move(archive)) {}

  [[nodiscard]] const Archive& operator*() const noexcept { return archive_; }
  [[nodiscard]] const Archive* operator->() const noexcept { return &archive_; }

 private:
  std::unique_ptr<CheckpointPlugin> plugin_;
  Archive archive_;
};

class ArchiveOpener {
 public:
  /// Both must outlive this object.
  ArchiveOpener(const Catalog& catalog, Log& log) : catalog_(catalog), log_(log) {}

  /// Throws Failure (Storage) when nothing is there, when it is damaged, or when no plugin knows
  /// it.
  [[nodiscard]] OpenArchive open(const std::string& uri) const;
  /// A plugin by name, as one rank. `options` is a table of those that are not the default.
  /// Throws Failure (Usage) with all that do not fit.
  [[nodiscard]] std::unique_ptr<CheckpointPlugin> create(std::string_view name,
                                                         const Node& options = {
                                                             Node::Table{}, {}, {}}) const;

 private:
  [[nodiscard]] std::unique_ptr<CheckpointPlugin> create(const FoundPlugin& found,
                                                         const Node* options) const;

  const Catalog& catalog_;
  Log& log_;
};

}  // namespace ciuic::core
