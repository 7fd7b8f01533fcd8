// SPDX-License-Identifier: MIT
//
// Whether an instance rounds by the seed, seen from outside. A plugin's feature says that it can;
// its options say whether it does, and where it does not, the stricter tests hold.
#pragma once

#include "operand.h"

namespace ciuic::testing {

/// Does another seed give other bits? Throws NotOffered for types that the plugin does not take.
inline bool rounds_by_seed(const PluginInstance& optimizer, const Layout& layout, uint64_t seed) {
  Operand one(optimizer, 1003, layout, seed);
  Operand two(optimizer, 1003, layout, seed);
  RuleStep step{1, 1e-2, 1, 0.5};
  one.update(optimizer, step);
  step.seed += 1000;
  two.update(optimizer, step);
  return one.written_bits() != two.written_bits();
}

}  // namespace ciuic::testing
