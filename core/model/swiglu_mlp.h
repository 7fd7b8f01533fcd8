// SPDX-License-Identifier: MIT
#pragma once

// The dense feed-forward block: y = residual + down(silu(gate(x)) * up(x)). Also runs the shared
// experts.
//
// Gate and up are kept side by side in one [N, 2I] buffer: where the two weights lie next to each
// other in memory (as they do in a flat bucket) one product serves both, and the activation's
// backward replaces them in place. Source: GLU Variants Improve Transformer, arXiv:2002.05202,
// equation 6.

#include <ATen/core/Tensor.h>

#include "core/model/gradient.h"

namespace ciuic::core {

struct SwigluTape {
  at::Tensor x_ND;
  at::Tensor gate_up_NI;  // [N, 2I]
};

/// `weights`: gate_proj [I, D], up_proj [I, D], down_proj [D, I], in this order.
at::Tensor swiglu_mlp_forward(Bindings weights, const at::Tensor& x_ND,
                              const at::Tensor& residual_ND, SwigluTape* tape);

/// Returns dx (the residual's gradient is dy itself). Empties the tape.
at::Tensor swiglu_mlp_backward(Bindings weights, const at::Tensor& dy_ND, SwigluTape& tape);

}  // namespace ciuic::core
