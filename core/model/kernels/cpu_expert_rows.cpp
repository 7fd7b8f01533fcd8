// SPDX-License-Identifier: MIT
// Expert rows on the CPU. combine_rows_ reads where a scatter would write: no two threads meet, and
// the order is fixed.
#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>

#include "core/model/kernels/cpu_loops.h"
#include "core/model/kernels/expert_rows.h"

namespace ciuic::core::kernels::cpu {
namespace {

// Elements of a row that are summed over all choices before they are stored: a stretch of
// accumulators in the cache.
constexpr int64_t kStretch = 256;

template <typename T, typename A>
CIUIC_CPU_CLONES void combine_tokens(T* out, const T* rows, const int32_t* row_of_choice,
                                     const A* weights, int64_t begin, int64_t end, int64_t choices,
                                     int64_t size) {
  A sum[kStretch];
  for (int64_t token = begin; token < end; ++token) {
    const int32_t* chosen = row_of_choice + token * choices;
    for (int64_t first = 0; first < size; first += kStretch) {
      const int64_t count = std::min(kStretch, size - first);
      T* target = out + token * size + first;
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) {
        sum[i] = static_cast<A>(target[i]);
      }
      for (int64_t k = 0; k < choices; ++k) {
        const T* row = rows + chosen[k] * size + first;
        const A weight = weights != nullptr ? weights[token * choices + k] : A(1);
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) {
          sum[i] += weight * static_cast<A>(row[i]);
        }
      }
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) {
        target[i] = narrow<T>(sum[i]);
      }
    }
  }
}

}  // namespace

at::Tensor gather_rows(const at::Tensor& x_ND, const at::Tensor& token_of_row_R) {
  const int64_t rows = token_of_row_R.size(0);
  const int64_t size = x_ND.size(1);
  at::Tensor out = at::empty({rows, size}, x_ND.options());
  const int64_t row_bytes = size * static_cast<int64_t>(x_ND.element_size());
  const auto* source = static_cast<const char*>(x_ND.const_data_ptr());
  auto* target = static_cast<char*>(out.mutable_data_ptr());
  const int32_t* token_of_row = token_of_row_R.const_data_ptr<int32_t>();
  parallel_rows(rows, size, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = token_of_row[row];
      if (token < 0) {
        std::memset(target + row * row_bytes, 0, row_bytes);
      } else {
        std::memcpy(target + row * row_bytes, source + token * row_bytes, row_bytes);
      }
    }
  });
  return out;
}

void combine_rows_(const at::Tensor& out_ND, const at::Tensor& rows_RD,
                   const at::Tensor& row_of_choice_NK, const at::Tensor& weights_NK) {
  const int64_t choices = row_of_choice_NK.size(1);
  const int64_t size = out_ND.size(1);
  with_dtype(out_ND.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using A = Accumulate<T>;
    T* out = out_ND.mutable_data_ptr<T>();
    const T* rows = rows_RD.const_data_ptr<T>();
    const int32_t* row_of_choice = row_of_choice_NK.const_data_ptr<int32_t>();
    const A* weights = weights_NK.defined() ? weights_NK.const_data_ptr<A>() : nullptr;
    parallel_rows(out_ND.size(0), choices * size, [&](int64_t begin, int64_t end) {
      combine_tokens<T, A>(out, rows, row_of_choice, weights, begin, end, choices, size);
    });
  });
}

}  // namespace ciuic::core::kernels::cpu
