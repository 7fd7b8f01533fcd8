// SPDX-License-Identifier: MIT
//
// May one library stand where another stood, without a change to run files and checkpoints?
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/plugin/descriptor_info.h"

namespace ciuic::core {

struct Replacement {
  std::vector<std::string> obstacles;  // empty: it may
  std::vector<std::string> changes;    // what differs and does no harm
};

using PluginList = std::vector<std::shared_ptr<const DescriptorInfo>>;

/// Every plugin of the old library against its namesake in the new one.
Replacement compare(const PluginList& before, const PluginList& after);

}  // namespace ciuic::core
