// SPDX-License-Identifier: MIT
//
// The arithmetic of one AdamW update over plain fp32 arrays, and bf16 rounding. Element-wise, so
// any split of an array gives the same bits.
#pragma once

#include <cstdint>

namespace ciuic::plugins::adamw {

/// The scalars of an update, computed in double and rounded once, as torch does.
struct Scalars {
  float grad_scale;  // gradient = grad * grad_scale
  float decay;       // 1 - lr * weight_decay
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float correction2;  // sqrt(1 - beta2^t)
  float epsilon;
  float step_size;  // -lr / (1 - beta1^t)
};

/// Updates value, exp_avg and exp_avg_sq of `count` elements from their gradients.
void update(const Scalars& s, int64_t count, const float* grad, float* value, float* exp_avg,
            float* exp_avg_sq);

/// Rounds to nearest, ties to even; NaN stays NaN.
void to_bf16(int64_t count, const float* in, uint16_t* out);
void from_bf16(int64_t count, const uint16_t* in, float* out);

}  // namespace ciuic::plugins::adamw
