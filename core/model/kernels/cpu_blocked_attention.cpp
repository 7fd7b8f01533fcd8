// SPDX-License-Identifier: MIT
#include "core/model/kernels/blocked_attention.h"
namespace ciuic::core::kernels {
bool has_blocked_attention(at::ScalarType) { return false; }
at::Tensor blocked_attention(const at::Tensor& q_BTHd, const at::Tensor&, const at::Tensor&, double, at::Tensor*) { return q_BTHd; }
AttentionGradient blocked_attention_backward(const at::Tensor&, const AttentionTape&, double) { return {}; }
}
