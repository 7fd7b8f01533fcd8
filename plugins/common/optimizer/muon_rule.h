// SPDX-License-Identifier: MIT
//
// The element-wise halves of Muon (Keller Jordan, 2024), before and after orthogonalisation:
//   m = lerp(m, g, 1 - momentum);  u = lerp(g, m, momentum) (Nesterov) or m
//   p = p decay + size orthogonal(u)
#pragma once

#include "optimizer/block.h"

namespace ciuic::plugins::optimizer {

struct MuonMomentum {
  float grad_scale;
  float momentum, rest;  // rest: 1 - momentum
  bool nesterov;
};
/// state[0] is m; `direction` gets u, one for each element of the block.
void muon_follow(const MuonMomentum& s, const Block& block, float* direction);

struct MuonStep {
  float decay, size;
};
/// `orthogonal`: of each element of the block. State is left alone.
void muon_step(const MuonStep& s, const Block& block, const float* orthogonal);

}  // namespace ciuic::plugins::optimizer
