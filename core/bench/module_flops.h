// SPDX-License-Identifier: MIT
//
// The model FLOPs of a token by part of the model. They add up to flops_per_token
// (core/model/parameter_specs.h): 2 per active parameter forward and 4 backward, and causal
// attention.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/bench/step_clock.h"
#include "core/model/model_config.h"

namespace ciuic::core {

/// Forward and backward together, by Part; a third of it is the forward's.
std::array<double, kNumParts> module_flops(const ModelConfig& config, int64_t sequence_tokens);

/// How often a token meets a parameter of this part: one of the routed experts' only now and then.
double uses_per_token(Part part, const ModelConfig& config);

/// Whose products a parameter takes part in, by its name.
Part part_of_parameter(std::string_view name);

}  // namespace ciuic::core
