// SPDX-License-Identifier: MIT
// Cross entropy: choice of the kernel, and the composition of LibTorch operations that it must
// agree with.
#include "core/model/kernels/cross_entropy.h"

#include <ATen/ops/exp.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scatter_add.h>

#include "core/model/kernels/dtypes.h"

namespace ciuic::core::kernels {
namespace reference {

at::Tensor cross_entropy(const at::Tensor& logits_NV, const at::Tensor& targets_N) {
  const at::Tensor log_p = at::log_softmax(logits_NV, 1, accumulate_dtype(logits_NV.scalar_type()));
  const at::Tensor losses = log_p.gather(1, targets_N.clamp_min(0).unsqueeze(1)).squeeze(1).neg();
  return losses.masked_fill(targets_N.lt(0), 0);
}

at::Tensor cross_entropy_backward_(const at::Tensor& logits_NV, const at::Tensor& targets_N,
                                   double seed) {
  const at::Tensor losses = cross_entropy(logits_NV, targets_N);
  const at::Tensor p = at::log_softmax(logits_NV, 1, losses.scalar_type()).exp();
  const at::Tensor index = targets_N.clamp_min(0).unsqueeze(1);
  at::Tensor gradient = p.scatter_add(1, index, at::ones_like(index, p.options()).neg()).mul(seed);
  logits_NV.copy_(gradient.masked_fill(targets_N.lt(0).unsqueeze(1), 0));
  return losses;
}

}  // namespace reference

at::Tensor cross_entropy(const at::Tensor& logits_NV, const at::Tensor& targets_N) {
  return logits_NV.is_cpu() ? cpu::cross_entropy(logits_NV, targets_N)
                            : reference::cross_entropy(logits_NV, targets_N);
}

at::Tensor cross_entropy_backward_(const at::Tensor& logits_NV, const at::Tensor& targets_N,
                                   double seed) {
  return logits_NV.is_cpu() ? cpu::cross_entropy_backward_(logits_NV, targets_N, seed)
                            : reference::cross_entropy_backward_(logits_NV, targets_N, seed);
}

}  // namespace ciuic::core::kernels
