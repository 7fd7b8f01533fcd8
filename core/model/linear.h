// SPDX-License-Identifier: MIT
#pragma once

// The products of a linear module y = x W^T with its parameter, W [out, in]: by the precision policy
// where it takes them (policy_products.h), else by product.h. The gradient of W is
// accumulate_product() in gradient.h.

#include <ATen/core/Tensor.h>

#include "core/model/gradient.h"

namespace ciuic::core {

/// x W^T
at::Tensor linear(const at::Tensor& x_NI, const Bound& weight);
/// out = x W^T; out's rows may be apart.
void linear_out(const at::Tensor& out_NO, const at::Tensor& x_NI, const Bound& weight);
/// residual + x W^T
at::Tensor add_linear(const at::Tensor& residual_NO, const at::Tensor& x_NI, const Bound& weight);

/// dy W
at::Tensor linear_backward(const at::Tensor& dy_NO, const Bound& weight);
/// dx (+)= dy W
void linear_backward_out(const at::Tensor& dx_NI, const at::Tensor& dy_NO, const Bound& weight,
                         bool adds = false);

}  // namespace ciuic::core
