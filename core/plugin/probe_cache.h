// SPDX-License-Identifier: MIT
//
// What ciuic-probe found, kept in the user's cache folder. Keyed by content: the plugin's digest
// (with what it brings along), the probe that looked at it, and the C library it was loaded by. Only
// what follows from these is kept: a library that could not load for want of another is asked again.
#pragma once

#include <optional>
#include <string>

#include "core/plugin/probe.h"

namespace ciuic::core {

class ProbeCache {
 public:
  /// `folder` is the cache folder, private already. Makes its own folders in it.
  explicit ProbeCache(const std::string& folder, std::string probe_executable);

  [[nodiscard]] std::optional<ProbeAnswer> find(const std::string& digest) const;
  void keep(const std::string& digest, const ProbeAnswer& answer) const;

  /// The same for one call of validate().
  [[nodiscard]] std::optional<std::string> find_validated(const std::string& digest,
                                                          const ProbeRequest& request) const;
  void keep_validated(const std::string& digest, const ProbeRequest& request,
                      const std::string& refused) const;

  /// Of this user and machine, one process at a time asks the probe.
  [[nodiscard]] std::string guard() const { return folder_ + "/probe.guard"; }
  [[nodiscard]] std::string staging_folder() const { return folder_ + "/staged"; }
  [[nodiscard]] const std::string& probe_executable() const { return probe_; }

  /// Forgets results that are older than a month, when there are many.
  void remove_old() const;

 private:
  [[nodiscard]] std::string path_of(const std::string& what) const;

  std::string folder_;
  std::string probe_;
  std::string host_;  // who looks: the probe's file, the C library, the ABI
};

}  // namespace ciuic::core
