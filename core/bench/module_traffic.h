// SPDX-License-Identifier: MIT
//
// How many bytes each part of the model has to read and write, if caches hold all that lies within a
// part and nothing between two of them. Beside the rate at which memory copies it says which parts
// memory can limit; what really moves takes hardware counters to see. Small models stay in caches from
// one part to the next, and then a part can be faster than memory.
#pragma once

#include <array>
#include <cstdint>

#include "core/bench/step_clock.h"
#include "core/model/model_config.h"

namespace ciuic::core {

/// Bytes of an element.
struct ElementBytes {
  double value = 4;       // a weight, as layers read it
  double gradient = 4;    // of a weight, as layers add to it
  double activation = 4;  // and of the gradient of one
};

/// Of one micro-batch, forward and backward together, by Part. Each weight is read in forward and in
/// backward and its gradient written; forward reads a part's input and writes its output; backward reads
/// the output's gradient and the input and writes the input's gradient. Routing is balanced.
std::array<double, kNumParts> least_traffic(const ModelConfig& config, int64_t tokens,
                                            const ElementBytes& bytes);

}  // namespace ciuic::core
