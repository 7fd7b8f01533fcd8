// SPDX-License-Identifier: MIT
#pragma once

// The dtype that sums, norms, softmaxes and routers are computed in.

#include <c10/core/ScalarType.h>

namespace ciuic::core::kernels {

/// f64 for f64, else f32.
inline at::ScalarType accumulate_dtype(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace ciuic::core::kernels
