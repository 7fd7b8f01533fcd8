// SPDX-License-Identifier: MIT
// Model configurations by name.
#include "core/model/presets.h"

#include <ciuic/error.hpp>

#include "core/model/model_config.h"

namespace ciuic::core {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : preset_files()) {
    names.emplace_back(name);
  }
  return names;
}

ModelConfig preset(std::string_view name) {
  std::string known;
  for (const auto& [candidate, text] : preset_files()) {
    if (candidate == name) {
      return from_json(nlohmann::json::parse(text), "preset " + std::string(name));
    }
    known += (known.empty() ? "" : ", ") + std::string(candidate);
  }
  throw Error(CIUIC_INVALID, "model.preset: got \"" + std::string(name) + "\", expected one of " +
                                 known + "; or give a folder with from = \"hf/dir\"");
}

}  // namespace ciuic::core
