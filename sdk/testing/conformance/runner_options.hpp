// SPDX-License-Identifier: MIT
//
// `--set key=value`: text to a typed value, by the plugin's own option table.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ciuic/testing/loaded_plugin.hpp>

namespace ciuic::testing {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// The settings that this plugin declares, typed. Throws UsageError for a value that does not fit;
/// keys that it does not declare are left out (another plugin of the library may).
OptionValues typed_options(const ciuic_descriptor& descriptor, const Settings& settings);

[[nodiscard]] bool declares(const ciuic_descriptor& descriptor, const std::string& key);

}  // namespace ciuic::testing
