// SPDX-License-Identifier: MIT
#pragma once

// Causal attention in blocks of queries, for the CPU: one head at a time, with scores of one block
// in the cache. attention.h has the shapes and the reference.

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "core/model/attention.h"

namespace ciuic::core::kernels {

bool has_blocked_attention(at::ScalarType dtype);

at::Tensor blocked_attention(const at::Tensor& q_BTHd, const at::Tensor& k_BTHd,
                             const at::Tensor& v_BTHd, const AttentionRule& rule,
                             at::Tensor* log_sum_BHT);

AttentionGradient blocked_attention_backward(const at::Tensor& dout_BTHd, const AttentionTape& tape,
                                             const AttentionRule& rule, const at::Tensor& dv_BTHd);

/// The same on the tiles of bf16_tiles.h: probabilities and their gradients are rounded to bf16 before
/// they are multiplied, as in every flash attention; sums stay in f32.
bool has_bf16_attention(at::ScalarType dtype);

at::Tensor bf16_attention(const at::Tensor& q_BTHd, const at::Tensor& k_BTHd,
                          const at::Tensor& v_BTHd, const AttentionRule& rule,
                          at::Tensor* log_sum_BHT);

AttentionGradient bf16_attention_backward(const at::Tensor& dout_BTHd, const AttentionTape& tape,
                                          const AttentionRule& rule, const at::Tensor& dv_BTHd);

}  // namespace ciuic::core::kernels
