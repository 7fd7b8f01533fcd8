// SPDX-License-Identifier: MIT
#pragma once

// Balance losses of one mixture: their value, and their gradient by way of the scores.
//
// For a sequence of T tokens, with s' the scores of a token divided by their sum:
//   f_i = E / (K T) * #{tokens that choose i},  P_i = mean of s'_i,  L = balance * sum_i f_i P_i
// and, for groups d of experts (V2's devices), f'_d = mean of f_i in d, P'_d = sum of P_i in d,
// f''_d = D / (M T) * #{tokens with an expert in d}. The counts are constants, so each term's
// gradient is a coefficient per expert on s'. V3 counts by the best K unbiased scores (equation
// 18), V2 by the experts that were chosen. Sources: objective.h.

#include <ATen/core/Tensor.h>

#include "core/model/objective.h"
#include "core/model/router.h"

namespace ciuic::core {

struct Balance {
  double sum = 0;              // of the loss over tokens
  at::Tensor coefficients_BE;  // d sum / d s' of one token, f32 or f64
};

/// scores: all scores [N, E] of B sequences of equal length, N = B * T.
Balance balance_of(const RouterRule& rule, const Objective& objective, const at::Tensor& scores_NE,
                   const at::Tensor& experts_NK, int64_t num_sequences);

/// d sum / d logits [N, E].
at::Tensor balance_backward(const RouterRule& rule, const at::Tensor& scores_NE,
                            const at::Tensor& coefficients_BE);

}  // namespace ciuic::core
