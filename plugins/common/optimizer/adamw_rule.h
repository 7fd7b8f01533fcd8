// SPDX-License-Identifier: MIT
//
// AdamW: Decoupled Weight Decay Regularization (arXiv:1711.05101), algorithm 2, in the order of
// operations of torch.optim.AdamW:
//   p *= 1 - lr wd;  m = lerp(m, g, 1 - beta1);  v = beta2 v + (1 - beta2) g g
//   p -= lr / (1 - beta1^t)  m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
#pragma once

#include <cstdint>

#include <ciuic/optimizer.hpp>

#include "optimizer/block.h"

namespace ciuic::plugins::optimizer {

struct AdamWOptions {
  double beta1, beta2, epsilon;
};

/// Of one update, computed in double and rounded once, as torch does.
struct AdamWScalars {
  float grad_scale;  // gradient = grad * grad_scale
  float decay;       // 1 - lr * weight_decay
  float toward;      // 1 - beta1, or -beta1 where lerp starts from the gradient
  bool from_moment;  // torch's lerp starts from the nearer end
  float beta2;
  float one_minus_beta2;
  float correction2;  // sqrt(1 - beta2^t)
  float epsilon;
  float step_size;  // -lr / (1 - beta1^t)
};
AdamWScalars adamw_scalars(const AdamWOptions& options, const ciuic_update& u, double weight_decay);

/// state[0] is m, state[1] is v.
void adamw_update(const AdamWScalars& s, const Block& block);

}  // namespace ciuic::plugins::optimizer
