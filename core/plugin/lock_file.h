// SPDX-License-Identifier: MIT
//
// ciuic.lock: the plugins that a run may use, each by the SHA-256 of its file. A plugin that is not
// in it, or has another hash, is refused. TOML, read by the configuration's own reader:
//
//   format = 2
//
//   [[plugin]]
//   kind = "optimizer"
//   name = "adamw"
//   version = "1.0.0"
//   abi = "0.2"
//   sha256 = "64 hexadecimal digits"
//   bundle = "64 hexadecimal digits"   # when it brings libraries along ($ORIGIN): of all together
//   file = "libadamw.so"        # information only
//
// An entry without a bundle is of a plugin that brings nothing along, and refuses one that does. That
// holds for format 1 too, which had no bundles (and no `format`): it still locks single files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/problem.h"

namespace ciuic::core {

struct LockedPlugin {
  std::string kind;
  std::string name;
  std::string version;
  std::string abi;
  std::string sha256;
  std::string file;
  std::string bundle = {};  // empty: it brings nothing along
};

class LockFile {
 public:
  /// Problems are appended; what is right is kept.
  static LockFile parse(std::string_view text, const std::string& file,
                        std::vector<Problem>& problems);
  /// Throws Failure (Usage): missing, unreadable or with problems, all of which are said.
  static LockFile read(const std::string& path);

  void add(LockedPlugin plugin) { plugins_.push_back(std::move(plugin)); }
  [[nodiscard]] const std::vector<LockedPlugin>& plugins() const { return plugins_; }
  [[nodiscard]] const LockedPlugin* find(std::string_view kind, std::string_view name) const;
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Why this file may not stand for the plugin, with both hashes; empty when it may.
  [[nodiscard]] std::string problem_with(std::string_view kind, std::string_view name,
                                         std::string_view sha256) const;

  /// The same for what it brings along: `bundle` is Bundle::locked. Of a plugin whose own hash is right.
  [[nodiscard]] std::string bundle_problem(std::string_view kind, std::string_view name,
                                           std::string_view bundle) const;

  /// Sorted by kind and name, with a head that says what it is.
  [[nodiscard]] std::string text() const;

 private:
  std::string path_;
  std::vector<LockedPlugin> plugins_;
};

}  // namespace ciuic::core
