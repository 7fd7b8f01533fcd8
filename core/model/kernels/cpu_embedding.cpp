// SPDX-License-Identifier: MIT
// Embedding gradient on the CPU: threads share out the columns, so each element is summed by one
// thread, in order.
#include "core/model/kernels/cpu_loops.h"
#include "core/model/kernels/embedding.h"

namespace ciuic::core::kernels::cpu {
namespace {

template <typename T, typename A>
CIUIC_CPU_CLONES void add_columns(A* gradient, const int64_t* tokens, const T* rows, int64_t count,
                                  int64_t size, int64_t begin, int64_t end) {
  for (int64_t n = 0; n < count; ++n) {
    A* target = gradient + tokens[n] * size;
    const T* row = rows + n * size;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      target[i] += static_cast<A>(row[i]);
    }
  }
}

}  // namespace

void add_rows_at_(const at::Tensor& gradient_VD, const at::Tensor& tokens_N,
                  const at::Tensor& rows_ND) {
  const int64_t size = gradient_VD.size(1);
  const int64_t count = tokens_N.size(0);
  with_dtype(rows_ND.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using A = Accumulate<T>;
    A* gradient = gradient_VD.mutable_data_ptr<A>();
    const int64_t* tokens = tokens_N.const_data_ptr<int64_t>();
    const T* rows = rows_ND.const_data_ptr<T>();
    // Columns in steps of 64: no two threads write to one cache line.
    constexpr int64_t kColumns = 64;
    parallel_rows((size + kColumns - 1) / kColumns, kColumns * count,
                  [&](int64_t begin, int64_t end) {
                    add_columns<T, A>(gradient, tokens, rows, count, size, begin * kColumns,
                                      std::min(size, end * kColumns));
                  });
  });
}

}  // namespace ciuic::core::kernels::cpu
