// SPDX-License-Identifier: MIT
#pragma once

// How much memory the activations of a micro-batch take, by arithmetic: nothing is allocated.
//
// Follows what the layers keep in their tapes and hold while they run (decoder_layer.h,
// latent_attention.h, mixture_of_experts.h, head.h); a test holds it to what an allocator counts.
// No LibTorch.

#include <cstdint>

#include "core/model/model_config.h"
#include "core/model/recompute.h"

namespace ciuic::core {

struct ActivationShape {
  int64_t rows = 1;           // of the micro-batch
  int64_t tokens = 1;         // of a row
  int64_t element_bytes = 4;  // of the activation dtype: 4 or 2
  Recompute recompute = Recompute::None;
  bool has_balance = false;  // a balance loss keeps all scores
  bool has_router_z = false;
  /// Narrow products are LibTorch's, which need more: rounded gradients, packed factors, padded
  /// groups of experts. The own ones (product.h) don't; where it is not known, more is planned for.
  bool has_narrow_copies = true;
};

struct ActivationBytes {
  int64_t kept = 0;     // all tapes, from the forward to their backward
  int64_t passing = 0;  // the most that lives besides, while one unit runs

  [[nodiscard]] int64_t peak() const { return kept + passing; }
};

ActivationBytes activation_bytes(const ModelConfig& config, const ActivationShape& shape);

}  // namespace ciuic::core
