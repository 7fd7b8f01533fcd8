// SPDX-License-Identifier: MIT
#pragma once

// How a layer meets its parameters, and the one place where parameter gradients are written.
//
// The sharding plugin hands out views for the time of a bind. A gradient view is either added to,
// or, where `overwrite` is set, holds garbage and must be written in full: products then run with
// beta = 0 straight into the view, so nothing is zeroed in advance and nothing is copied
// afterwards.

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "core/model/policy_products.h"

namespace ciuic::core {

/// One parameter during a bind.
/// value: [shape of the spec], contiguous; f32, bf16, f16 or f64.
/// grad:  same shape, contiguous; f32 (f64 for f64). Undefined: no gradient is wanted.
struct Bound {
  at::Tensor value;
  at::Tensor grad;
  /// `grad` holds garbage: the backward that this bind serves writes all of it. Otherwise it adds.
  bool overwrite = false;
  /// Products of this module that the precision policy takes; nullptr: none.
  const ModuleHook* hook = nullptr;
};

/// A unit's parameters, in the order of parameter_specs().
using Bindings = std::span<const Bound>;

/// grad (+)= dy^T x. Shapes: grad [out, in], dy [rows, out], x [rows, in]; dy and x of one dtype.
/// Where LibTorch computes it in bf16 the product is rounded once before it is added (product.h).
void accumulate_product(const Bound& parameter, const at::Tensor& dy_NO, const at::Tensor& x_NI);

/// grad (+)= gradient, of the same shape.
void accumulate(const Bound& parameter, const at::Tensor& gradient);

/// Says that this backward has nothing for the parameter: zeros where the view must be written.
void accumulate_nothing(const Bound& parameter);

}  // namespace ciuic::core
