// SPDX-License-Identifier: MIT
//
// One library, mapped and looked at step by step. Every step is announced first; each may be the
// last thing that this process does.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <ciuic/abi/plugin.h>

#include "tools/probe/open_descriptors.h"

namespace ciuic::tools {

/// What a step found wrong.
struct ProbeRefusal {
  std::string step;
  std::string reason;
};

class ProbedLibrary {
 public:
  /// Throws ProbeRefusal. `id` is the request's.
  ProbedLibrary(size_t id, const std::string& path);

  /// {"descriptors": [...], "warnings": [...]}.
  [[nodiscard]] nlohmann::json describe() const;
  [[nodiscard]] const ciuic_descriptor* find(uint32_t kind, const std::string& name) const;
  /// Closes the library. Is it still mapped then?
  bool stays_after_close();

 private:
  using Query = const ciuic_descriptor* (*)(uint32_t, uint32_t);

  void load();
  [[nodiscard]] Query find_query() const;
  void query(Query function);
  void check_purity(Query function);
  void check_descriptors() const;

  size_t id_;
  std::string path_;
  OpenDescriptors descriptors_before_;
  void* handle_ = nullptr;
  std::vector<const ciuic_descriptor*> descriptors_;
  std::vector<std::string> warnings_;
};

/// Runs the plugin's validate(). What it refuses, or "".
std::string validate(const ciuic_descriptor& descriptor, const nlohmann::json& request);

}  // namespace ciuic::tools
