// SPDX-License-Identifier: MIT
#pragma once

// Normal noise on a router's logits while training, so that near ties are explored.
//
// A function of (seed, layer, sample, token, expert) alone: the same at every world size and split
// into micro-batches, and the same again when a layer is computed again. Off unless
// schedule.router_noise says otherwise. Source: Outrageously large neural networks,
// arXiv:1701.06538, equation 4, with a fixed deviation.

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace ciuic::core {

struct RouterNoise {
  double deviation = 0;
  uint64_t seed = 0;
  int64_t layer = 0;
  std::span<const uint64_t> samples;  // of the rows
};

/// [rows * T, E], in the dtype of `logits`, which has that shape.
at::Tensor router_noise(const RouterNoise& noise, const at::Tensor& logits_NE);

}  // namespace ciuic::core
