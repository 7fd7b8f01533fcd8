// SPDX-License-Identifier: MIT
// Embedding gradient: choice of the kernel, and the LibTorch operation that it must agree with.
#include "core/model/kernels/embedding.h"

#include <ATen/ops/embedding_dense_backward.h>

namespace ciuic::core::kernels {
namespace reference {

// embedding_dense_backward sorts on a GPU and walks on a CPU: no atomics either way.
void add_rows_at_(const at::Tensor& gradient_VD, const at::Tensor& tokens_N,
                  const at::Tensor& rows_ND) {
  gradient_VD.add_(at::embedding_dense_backward(rows_ND.to(gradient_VD.scalar_type()), tokens_N,
                                                gradient_VD.size(0),
                                                /*padding_idx=*/-1, /*scale_grad_by_freq=*/false));
}

}  // namespace reference

void add_rows_at_(const at::Tensor& gradient_VD, const at::Tensor& tokens_N,
                  const at::Tensor& rows_ND) {
  gradient_VD.is_cpu() ? cpu::add_rows_at_(gradient_VD, tokens_N, rows_ND)
                       : reference::add_rows_at_(gradient_VD, tokens_N, rows_ND);
}

}  // namespace ciuic::core::kernels
