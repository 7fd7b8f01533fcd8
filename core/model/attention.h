// SPDX-License-Identifier: MIT
#pragma once

// Causal attention over heads whose values may be narrower than their queries and keys, as MLA's
// are.
//
// Three ways to the same numbers: `Blocked` (own, CPU), `Fused` (LibTorch's flash attention for the
// CPU) and `Reference` (plain products with all scores in memory). The first two never hold T x T
// scores. Source: FlashAttention-2, arXiv:2307.08691, algorithms 1 and 2.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/rows.h"

namespace ciuic::core {

enum class AttentionPath { Blocked, Fused, Reference };

/// Who sees whom, and the factor on scores before the softmax.
struct AttentionRule {
  const Rows& rows;
  double scale;
};

/// What backward needs. q, k: [B, T, H, dqk]; v, out: [B, T, H, dv]; log_sum: [B, H, T] f32 or f64.
struct AttentionTape {
  at::Tensor q_BTHd, k_BTHd, v_BTHd, out_BTHd, log_sum_BHT;
};

struct AttentionGradient {
  at::Tensor dq_BTHd, dk_BTHd;
};

/// The fastest path that serves this device and dtype.
AttentionPath best_attention_path(const at::Tensor& q);

/// softmax(scale q k^T, causal within a span) v -> [B, T, H, dv], contiguous.
/// Inputs: last dimension contiguous, other strides free. Keeps its inputs in `tape` unless that is
/// nullptr.
at::Tensor attention_forward(AttentionPath path, const at::Tensor& q_BTHd, const at::Tensor& k_BTHd,
                             const at::Tensor& v_BTHd, const AttentionRule& rule,
                             AttentionTape* tape);

/// Empties the tape. dq and dk are contiguous; dv is written into `dv`, whose rows and heads may be
/// apart, since MLA keeps values beside keys.
AttentionGradient attention_backward(AttentionPath path, const at::Tensor& dout_BTHd,
                                     AttentionTape& tape, const AttentionRule& rule,
                                     const at::Tensor& dv_BTHd);

}  // namespace ciuic::core
