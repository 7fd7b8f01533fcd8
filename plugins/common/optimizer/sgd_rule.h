// SPDX-License-Identifier: MIT
//
// SGD as torch.optim.SGD computes it: decay is part of the gradient, and the first momentum is the
// first gradient, without dampening.
//   g = grad + wd p;  b = momentum b + (1 - dampening) g
//   p -= lr b,  nesterov: p -= lr (g + momentum b),  no momentum: p -= lr g
#pragma once

#include <ciuic/optimizer.hpp>

#include "optimizer/block.h"

namespace ciuic::plugins::optimizer {

struct SgdOptions {
  double momentum, dampening;
  bool nesterov;
};

/// Of one update, computed in double and rounded once.
struct SgdScalars {
  float grad_scale;
  float decay;  // weight decay: added to the gradient
  float momentum;
  float rest;  // 1 - dampening
  float step;  // -lr
  bool nesterov;
};
SgdScalars sgd_scalars(const SgdOptions& options, const ciuic_update& u, double weight_decay);

/// state[0] is the momentum's buffer; not looked at where momentum is 0.
void sgd_update(const SgdScalars& s, const Block& block);

}  // namespace ciuic::plugins::optimizer
