// SPDX-License-Identifier: MIT
//
// Lion: Symbolic Discovery of Optimization Algorithms (arXiv:2302.06675), program 1, with decoupled
// decay, in the order of operations of its authors' code for PyTorch:
//   p *= 1 - lr wd;  p -= lr sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g
// The sign of 0 is 0, that of NaN is NaN.
#pragma once

#include <ciuic/optimizer.hpp>

#include "optimizer/block.h"

namespace ciuic::plugins::optimizer {

struct LionOptions {
  double beta1, beta2;
};

/// Of one update, computed in double and rounded once.
struct LionScalars {
  float grad_scale;
  float decay;  // 1 - lr * weight_decay
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float step;  // -lr
};
LionScalars lion_scalars(const LionOptions& options, const ciuic_update& u, double weight_decay);

/// state[0] is m.
void lion_update(const LionScalars& s, const Block& block);

}  // namespace ciuic::plugins::optimizer
