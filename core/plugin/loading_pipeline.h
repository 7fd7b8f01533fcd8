// SPDX-License-Identifier: MIT
//
// From a path to a plugin that may be loaded, in steps, each of which may refuse it:
//
//   resolve     the file is there and can be read
//   trust       nobody but trusted users could have written it (trusted_file.h)
//   hash        its SHA-256, and that of what it brings along, is what the lock says
//   quarantine  this content did not crash or hang lately
//   note        its headers are sound, its ELF note names plugins of this host's ABI
//   stage       a private copy is made, of the very bytes that were judged so far
//   load, query, descriptor   a child process maps the copy and looks at what it shows
//
// Until then no code of the plugin has run in this process. A rank maps the staged copy later
// (library_file.h). What the child found is kept by the content's hash, so the next start needs none.
//
// Thread rule: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plugin/library_file.h"
#include "core/plugin/load_rules.h"
#include "core/plugin/lock_file.h"
#include "core/plugin/probe_cache.h"
#include "core/plugin/quarantine.h"
#include "core/plugin/staging.h"

namespace ciuic::core {

/// Seconds spent so far, for `ciuic plugin list --timing`.
struct LoadingTimes {
  double examine = 0;  // up to the note
  double stage = 0;
  double cache = 0;
  double probe = 0;
  size_t probed = 0;  // files that needed the child
};

/// One plugin and the options that it would be created with.
struct ValidateCall {
  const LibraryFile& file;
  const DescriptorInfo& plugin;
  const PluginOptions& options;
  const Placement& placement;
};

class LoadingPipeline {
 public:
  /// Reads the lock that the rules name. Throws Failure (Usage) when it is no lock.
  explicit LoadingPipeline(LoadRules rules);

  /// Up to the note; nothing is written and nothing runs. The same file for the same path.
  std::shared_ptr<LibraryFile> examine(const std::string& path);

  /// The rest, for all that are not refused yet, with one child for those that the cache does not
  /// know. Throws Failure (Environment) when copies or children cannot be made.
  void admit(const std::vector<std::shared_ptr<LibraryFile>>& files);

  /// The plugins' own checks of their options against each other, in a child unless the same was
  /// asked before. What each refuses; empty: nothing. Throws Failure (Plugin) when one crashes.
  std::vector<std::string> validate(const std::vector<ValidateCall>& calls);

  [[nodiscard]] const LoadRules& rules() const { return rules_; }
  [[nodiscard]] const LoadingTimes& times() const { return times_; }
  [[nodiscard]] const std::optional<LockFile>& lock() const { return lock_; }

 private:
  struct Known {
    std::shared_ptr<LibraryFile> file;
    std::vector<std::byte> bytes;  // until it is staged
    std::optional<Bundle> bundle;  // likewise: what was compared with the lock is what is staged
  };

  void examine(Known& known);
  void check_hash(Known& known) const;
  const Bundle& bundle_of(Known& known) const;
  void check_quarantine(LibraryFile& file);
  void stage(Known& known);
  bool take_from_cache(LibraryFile& file);
  void probe(std::vector<LibraryFile*> files);
  void take(LibraryFile& file, ProbeAnswer answer);
  ProbeCache& cache();

  LoadRules rules_;
  std::optional<LockFile> lock_;
  TrustContext trust_;
  std::map<std::string, Known> known_;
  std::optional<std::map<std::string, QuarantineEntry>> quarantined_;
  std::optional<ProbeCache> cache_;
  LoadingTimes times_;
};

}  // namespace ciuic::core
