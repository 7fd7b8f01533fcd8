// SPDX-License-Identifier: MIT
// SwiGLU on the CPU: one pass over memory each way.
#include <ATen/ops/empty.h>

#include "core/model/kernels/cpu_loops.h"
#include "core/model/kernels/dtypes.h"
#include "core/model/kernels/swiglu.h"

namespace ciuic::core::kernels::cpu {
namespace {

template <typename T, typename A>
CIUIC_CPU_CLONES void forward_rows(const T* gate_up, T* out, int64_t begin, int64_t end,
                                   int64_t width) {
  for (int64_t row = begin; row < end; ++row) {
    const T* gate = gate_up + row * 2 * width;
    const T* up = gate + width;
    T* a = out + row * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const A g = static_cast<A>(gate[i]);
      a[i] = narrow<T>(g * sigmoid(g) * static_cast<A>(up[i]));
    }
  }
}

template <typename T, typename A>
CIUIC_CPU_CLONES void backward_rows(T* gate_up, T* da, const A* weights, A* dweights, int64_t begin,
                                    int64_t end, int64_t width) {
  for (int64_t row = begin; row < end; ++row) {
    T* gate = gate_up + row * 2 * width;
    T* up = gate + width;
    T* d = da + row * width;
    const A weight = weights != nullptr ? weights[row] : A(1);
    A dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < width; ++i) {
      const A g = static_cast<A>(gate[i]);
      const A u = static_cast<A>(up[i]);
      const A s = sigmoid(g);
      const A silu = g * s;
      const A unweighted = static_cast<A>(d[i]);
      const A dy = unweighted * weight;
      dot += unweighted * silu * u;
      gate[i] = narrow<T>(dy * u * s * (A(1) + g * (A(1) - s)));
      up[i] = narrow<T>(dy * silu);
      d[i] = narrow<T>(weight * silu * u);
    }
    if (dweights != nullptr) {
      dweights[row] = dot;
    }
  }
}

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up_RI) {
  const int64_t rows = gate_up_RI.size(0);
  const int64_t width = gate_up_RI.size(1) / 2;
  at::Tensor out = at::empty({rows, width}, gate_up_RI.options());
  with_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = gate_up_RI.const_data_ptr<T>();
    T* a = out.mutable_data_ptr<T>();
    parallel_rows(rows, 2 * width, [&](int64_t begin, int64_t end) {
      forward_rows<T, Accumulate<T>>(in, a, begin, end, width);
    });
  });
  return out;
}

at::Tensor swiglu_backward_(const at::Tensor& gate_up_RI, const at::Tensor& da_RI,
                            const at::Tensor& weights_R) {
  const int64_t rows = da_RI.size(0);
  const int64_t width = da_RI.size(1);
  at::Tensor dweights;
  if (weights_R.defined()) {
    dweights = at::empty({rows}, da_RI.options().dtype(accumulate_dtype(da_RI.scalar_type())));
  }
  with_dtype(da_RI.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using A = Accumulate<T>;
    T* gate_up = gate_up_RI.mutable_data_ptr<T>();
    T* da = da_RI.mutable_data_ptr<T>();
    const A* weights = weights_R.defined() ? weights_R.const_data_ptr<A>() : nullptr;
    A* sums = weights_R.defined() ? dweights.mutable_data_ptr<A>() : nullptr;
    parallel_rows(rows, 2 * width, [&](int64_t begin, int64_t end) {
      backward_rows<T, A>(gate_up, da, weights, sums, begin, end, width);
    });
  });
  return dweights;
}

}  // namespace ciuic::core::kernels::cpu
