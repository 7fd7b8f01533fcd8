// SPDX-License-Identifier: MIT
// SwiGLU: choice of the kernel, and the composition of LibTorch operations that it must agree with.
#include "core/model/kernels/swiglu.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sum.h>

#include "core/model/kernels/dtypes.h"

namespace ciuic::core::kernels {
namespace reference {

at::Tensor swiglu(const at::Tensor& gate_up_RI) {
  const int64_t width = gate_up_RI.size(1) / 2;
  const at::Tensor gate_up = gate_up_RI.to(accumulate_dtype(gate_up_RI.scalar_type()));
  const at::Tensor gate = gate_up.narrow(1, 0, width);
  const at::Tensor up = gate_up.narrow(1, width, width);
  return gate.mul(gate.sigmoid()).mul(up).to(gate_up_RI.scalar_type());
}

at::Tensor swiglu_backward_(const at::Tensor& gate_up_RI, const at::Tensor& da_RI,
                            const at::Tensor& weights_R) {
  const int64_t width = da_RI.size(1);
  const at::ScalarType dtype = accumulate_dtype(da_RI.scalar_type());
  const at::Tensor gate = gate_up_RI.narrow(1, 0, width).to(dtype, false, true);
  const at::Tensor up = gate_up_RI.narrow(1, width, width).to(dtype, false, true);
  const at::Tensor s = gate.sigmoid();
  const at::Tensor silu = gate.mul(s);
  at::Tensor activation = silu.mul(up);
  at::Tensor da = da_RI.to(dtype, false, true);
  at::Tensor dweights;
  if (weights_R.defined()) {
    const at::Tensor weights = weights_R.unsqueeze(1);
    dweights = da.mul(activation).sum({1});
    da = da.mul(weights);
    activation = activation.mul(weights);
  }
  gate_up_RI.narrow(1, 0, width).copy_(da.mul(up).mul(s).mul(gate.mul(s.mul(-1).add(1)).add(1)));
  gate_up_RI.narrow(1, width, width).copy_(da.mul(silu));
  da_RI.copy_(activation);
  return dweights;
}

}  // namespace reference

at::Tensor swiglu(const at::Tensor& gate_up_RI) {
  return gate_up_RI.is_cpu() ? cpu::swiglu(gate_up_RI) : reference::swiglu(gate_up_RI);
}

at::Tensor swiglu_backward_(const at::Tensor& gate_up_RI, const at::Tensor& da_RI,
                            const at::Tensor& weights_R) {
  return gate_up_RI.is_cpu() ? cpu::swiglu_backward_(gate_up_RI, da_RI, weights_R)
                             : reference::swiglu_backward_(gate_up_RI, da_RI, weights_R);
}

}  // namespace ciuic::core::kernels
