// SPDX-License-Identifier: MIT
//
// What [optimizer] says of single parameters by pattern: which are frozen, and factors on weight
// decay and learning rate. A tied parameter goes by its owner's name. No LibTorch: `config check`
// tells the problems before anything is started.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/config/plugin_options.h"
#include "core/config/run_config.h"
#include "core/model/parameter_specs.h"

namespace ciuic::core {

struct ParameterRule {
  bool is_frozen = false;
  double weight_decay = 1, learning_rate = 1;  // factors
};

ParameterRule rule_of(const OptimizerSection& section, std::string_view parameter);

/// Patterns that match no parameter, with the names that come nearest; a model with nothing to train.
void check_parameter_rules(const RunConfig& config, std::span<const ParameterSpec> parameters,
                           std::vector<Problem>& problems);
/// Likewise patterns in the options of a plugin.
void check_name_patterns(const PluginOptions& options, std::span<const ParameterSpec> parameters,
                         std::vector<Problem>& problems);

}  // namespace ciuic::core
