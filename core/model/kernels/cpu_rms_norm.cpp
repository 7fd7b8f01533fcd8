// SPDX-License-Identifier: MIT
// RMSNorm on the CPU: each row is read from memory once, and stays in the cache for its second
// look.
#include <algorithm>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "core/model/kernels/cpu_loops.h"
#include "core/model/kernels/dtypes.h"
#include "core/model/kernels/rms_norm.h"

namespace ciuic::core::kernels::cpu {
namespace {

// Rows of a matrix whose rows may be apart.
template <typename T>
struct Rows {
  T* data;
  int64_t stride;
  T* operator[](int64_t row) const { return data + row * stride; }
};

template <typename T>
Rows<T> rows_of(const at::Tensor& matrix) {
  TORCH_CHECK(matrix.dim() == 2 && (matrix.stride(1) == 1 || matrix.size(1) == 1),
              "rows must be contiguous");
  return {static_cast<T*>(matrix.data_ptr()), matrix.stride(0)};
}

template <typename T, typename A>
CIUIC_CPU_CLONES void forward_rows(Rows<const T> x, const A* weight, Rows<T> y, A* rstd,
                                   int64_t begin, int64_t end, int64_t size, A epsilon) {
  for (int64_t row = begin; row < end; ++row) {
    const T* in = x.data + row * x.stride;
    T* out = y.data + row * y.stride;
    A sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < size; ++i) {
      const A value = static_cast<A>(in[i]);
      sum += value * value;
    }
    const A r = A(1) / std::sqrt(sum / static_cast<A>(size) + epsilon);
    rstd[row] = r;
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      const T normed = narrow<T>(static_cast<A>(in[i]) * r);
      out[i] = narrow<T>(static_cast<A>(normed) * weight[i]);
    }
  }
}

// `residual` may be null. `dweight` [size] is added to.
template <typename T, typename A>
CIUIC_CPU_CLONES void backward_rows(Rows<const T> dy, Rows<const T> x, const A* rstd,
                                    const A* weight, Rows<const T> residual, Rows<T> dx, A* dweight,
                                    int64_t begin, int64_t end, int64_t size) {
  for (int64_t row = begin; row < end; ++row) {
    const T* dy_row = dy.data + row * dy.stride;
    const T* x_row = x.data + row * x.stride;
    T* dx_row = dx.data + row * dx.stride;
    const A r = rstd[row];
    A dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < size; ++i) {
      const A g = static_cast<A>(dy_row[i]);
      const A normed = static_cast<A>(x_row[i]) * r;
      dot += g * weight[i] * normed;
      dweight[i] += g * static_cast<A>(narrow<T>(normed));
    }
    const A mean = dot / static_cast<A>(size);
    if (residual.data != nullptr) {
      const T* residual_row = residual.data + row * residual.stride;
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) {
        const A normed = static_cast<A>(x_row[i]) * r;
        const A value = (static_cast<A>(dy_row[i]) * weight[i] - normed * mean) * r;
        dx_row[i] = narrow<T>(value + static_cast<A>(residual_row[i]));
      }
    } else {
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) {
        const A normed = static_cast<A>(x_row[i]) * r;
        dx_row[i] = narrow<T>((static_cast<A>(dy_row[i]) * weight[i] - normed * mean) * r);
      }
    }
  }
}

// Blocks depend on the number of rows alone, so weight gradients have the same bits at any number
// of threads.
constexpr int64_t kRowsPerBlock = 128;

}  // namespace

RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& weight_D, double epsilon) {
  const int64_t rows = x_ND.size(0);
  const int64_t size = x_ND.size(1);
  const at::ScalarType accumulate = accumulate_dtype(x_ND.scalar_type());
  const at::Tensor weight = weight_D.to(accumulate);
  RmsNorm out{at::empty({rows, size}, x_ND.options()),
              at::empty({rows}, x_ND.options().dtype(accumulate))};
  with_dtype(x_ND.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using A = Accumulate<T>;
    const auto x = rows_of<const T>(x_ND);
    const auto y = rows_of<T>(out.y_ND);
    const A* w = weight.const_data_ptr<A>();
    A* rstd = out.rstd_N.mutable_data_ptr<A>();
    parallel_rows(rows, size, [&](int64_t begin, int64_t end) {
      forward_rows<T, A>(x, w, y, rstd, begin, end, size, static_cast<A>(epsilon));
    });
  });
  return out;
}

at::Tensor rms_norm_backward_out(const at::Tensor& dx_ND, const at::Tensor& dy_ND,
                                 const at::Tensor& x_ND, const at::Tensor& rstd_N,
                                 const at::Tensor& weight_D, const at::Tensor& residual_ND) {
  const int64_t rows = x_ND.size(0);
  const int64_t size = x_ND.size(1);
  const int64_t blocks = std::max<int64_t>(1, (rows + kRowsPerBlock - 1) / kRowsPerBlock);
  const at::ScalarType accumulate = accumulate_dtype(x_ND.scalar_type());
  const at::Tensor weight = weight_D.to(accumulate);
  at::Tensor partial = at::zeros({blocks, size}, weight.options());
  with_dtype(x_ND.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using A = Accumulate<T>;
    const auto dx = rows_of<T>(dx_ND);
    const auto dy = rows_of<const T>(dy_ND);
    const auto x = rows_of<const T>(x_ND);
    const Rows<const T> residual =
        residual_ND.defined() ? rows_of<const T>(residual_ND) : Rows<const T>{nullptr, 0};
    const A* rstd = rstd_N.const_data_ptr<A>();
    const A* w = weight.const_data_ptr<A>();
    A* sums = partial.mutable_data_ptr<A>();
    parallel_rows(blocks, kRowsPerBlock * size, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        backward_rows<T, A>(dy, x, rstd, w, residual, dx, sums + block * size,
                            block * kRowsPerBlock, std::min(rows, (block + 1) * kRowsPerBlock),
                            size);
      }
    });
    for (int64_t block = 1; block < blocks; ++block) {
      for (int64_t i = 0; i < size; ++i) {
        sums[i] += sums[block * size + i];
      }
    }
  });
  return partial.select(0, 0);
}

}  // namespace ciuic::core::kernels::cpu
