// SPDX-License-Identifier: MIT
#pragma once

// Initial weights as a pure function of (seed, parameter name, element).
//
// So any rank fills any slice of any parameter and gets the bits that a single process would:
// nothing is broadcast, and a run starts alike at every world size and sharding. Normal values by
// Box-Muller from a counter-based generator, with polynomials instead of libm, whose last bit
// differs between processors.

#include <cstdint>
#include <span>

#include "core/model/parameter_specs.h"

namespace ciuic::core {

/// Writes elements [begin, begin + out.size()) of `parameter`, counted in row-major order.
/// Init::Normal: mean 0 and `standard_deviation` (config.initializer_range); Init::Ones: 1; Init::Zeros: 0.
void fill_initial_values(const ParameterSpec& parameter, double standard_deviation, uint64_t seed,
                         int64_t begin, std::span<float> out);

}  // namespace ciuic::core
