// SPDX-License-Identifier: MIT
//
// Other legal values for a plugin's options than the defaults.
#pragma once

#include <vector>

#include <ciuic/testing/conformance.hpp>

#include "bench.hpp"

namespace ciuic::testing::contract {

/// Legal values of one option that differ from its default: bounds, the other choices, true for
/// false. Empty for texts and lists, of which nothing is known.
std::vector<OptionValue> other_values(const ciuic_option_spec& spec);

/// As other_values, but numbers stay near the default: a batch of the largest size that an option
/// allows would be a test of patience.
std::vector<OptionValue> nearby_values(const ciuic_option_spec& spec);

/// As many options as possible away from their defaults, with which a life still comes to its end.
/// What the person set stays.
OptionValues other_options(const TestContext& context, Bench& bench);

/// What validate says of these options; OK where the plugin has none.
int32_t validated(const TestContext& context, Bench& bench, const OptionValues& options);

/// A life with these options comes to its end.
bool can_live(const TestContext& context, const OptionValues& options);

}  // namespace ciuic::testing::contract
