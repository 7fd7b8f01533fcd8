// SPDX-License-Identifier: MIT
#pragma once

// The router's rule on rows of logits; router.h says what it computes.

#include <ATen/core/Tensor.h>

#include "core/model/router.h"

namespace ciuic::core::kernels {

namespace reference {
Routing choose_experts(const RouterRule& rule, const at::Tensor& logits_NE,
                       const at::Tensor& bias_E, bool keeps_scores);
at::Tensor choose_experts_backward(const RouterRule& rule, const Routing& routing,
                                   const at::Tensor& dweights_NK);
}  // namespace reference

namespace cpu {
Routing choose_experts(const RouterRule& rule, const at::Tensor& logits_NE,
                       const at::Tensor& bias_E, bool keeps_scores);
at::Tensor choose_experts_backward(const RouterRule& rule, const Routing& routing,
                                   const at::Tensor& dweights_NK);
}  // namespace cpu

}  // namespace ciuic::core::kernels
