// SPDX-License-Identifier: MIT
#pragma once

// The backward of a norm with its parameter, as layers use it.

#include <ATen/core/Tensor.h>

#include "core/model/gradient.h"

namespace ciuic::core {

/// Returns d loss / d x of y = norm(x), plus `residual` [N, D] unless that is undefined, and
/// accumulates the weight's gradient. `rstd`: what the forward gave.
at::Tensor norm_backward(const Bound& weight, const at::Tensor& dy_ND, const at::Tensor& x_ND,
                         const at::Tensor& rstd_N, const at::Tensor& residual_ND);

}  // namespace ciuic::core
