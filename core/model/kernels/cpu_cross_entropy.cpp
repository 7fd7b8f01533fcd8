// SPDX-License-Identifier: MIT
// Cross entropy on the CPU: three short loops over a row that stays in the cache.
#include <ATen/ops/empty.h>

#include "core/model/kernels/cpu_loops.h"
#include "core/model/kernels/cross_entropy.h"
#include "core/model/kernels/dtypes.h"

namespace ciuic::core::kernels::cpu {
namespace {

template <typename T, typename A>
[[gnu::always_inline]] inline A row_maximum(const T* z, int64_t size) {
  A largest = static_cast<A>(z[0]);
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < size; ++i) {
    const A value = static_cast<A>(z[i]);
    largest = value > largest ? value : largest;
  }
  return largest;
}

template <typename T, typename A>
[[gnu::always_inline]] inline A sum_of_exponentials(const T* z, int64_t size, A largest) {
  A sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    sum += exponential(static_cast<A>(z[i]) - largest);
  }
  return sum;
}

template <typename T, typename A>
CIUIC_CPU_CLONES void loss_rows(T* logits, const int64_t* targets, A* losses, int64_t begin,
                                int64_t end, int64_t size, A seed, bool wants_gradient) {
  for (int64_t row = begin; row < end; ++row) {
    T* z = logits + row * size;
    const int64_t target = targets[row];
    if (target < 0) {
      losses[row] = 0;
      for (int64_t i = 0; wants_gradient && i < size; ++i) {
        z[i] = static_cast<T>(0);
      }
      continue;
    }
    const A largest = row_maximum<T, A>(z, size);
    const A sum = sum_of_exponentials<T, A>(z, size, largest);
    losses[row] = std::log(sum) + largest - static_cast<A>(z[target]);
    if (!wants_gradient) {
      continue;
    }
    const A factor = seed / sum;
    const A at_target = exponential(static_cast<A>(z[target]) - largest) * factor - seed;
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      z[i] = narrow<T>(exponential(static_cast<A>(z[i]) - largest) * factor);
    }
    z[target] = narrow<T>(at_target);
  }
}

at::Tensor run(const at::Tensor& logits_NV, const at::Tensor& targets_N, double seed,
               bool wants_gradient) {
  const int64_t rows = logits_NV.size(0);
  const int64_t size = logits_NV.size(1);
  at::Tensor losses =
      at::empty({rows}, logits_NV.options().dtype(accumulate_dtype(logits_NV.scalar_type())));
  with_dtype(logits_NV.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using A = Accumulate<T>;
    T* logits =
        const_cast<T*>(logits_NV.const_data_ptr<T>());  // written only when a gradient is wanted
    const int64_t* targets = targets_N.const_data_ptr<int64_t>();
    A* out = losses.mutable_data_ptr<A>();
    parallel_rows(rows, 4 * size, [&](int64_t begin, int64_t end) {
      loss_rows<T, A>(logits, targets, out, begin, end, size, static_cast<A>(seed), wants_gradient);
    });
  });
  return losses;
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& logits_NV, const at::Tensor& targets_N) {
  return run(logits_NV, targets_N, 0, false);
}

at::Tensor cross_entropy_backward_(const at::Tensor& logits_NV, const at::Tensor& targets_N,
                                   double seed) {
  return run(logits_NV, targets_N, seed, true);
}

}  // namespace ciuic::core::kernels::cpu
