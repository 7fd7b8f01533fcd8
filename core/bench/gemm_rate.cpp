// SPDX-License-Identifier: MIT
#include "core/bench/gemm_rate.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>

#include "core/bench/mapped_memory.h"
#include "core/bench/median.h"
#include "core/model/product.h"
#include "core/train/stopwatch.h"

namespace ciuic::core {
namespace {

/// Of each size, so that the small ones do not finish within a timer's noise: 0.25 s at 100 Gflop/s.
constexpr double kFlopsOfOneSize = 25e9;
constexpr int kFewest = 3;

/// A square matrix in memory of its own.
class MappedMatrix {
 public:
  MappedMatrix(int64_t size, at::ScalarType dtype)
      : memory_(static_cast<size_t>(size * size) * c10::elementSize(dtype)),
        matrix_(at::from_blob(memory_.data(), {size, size}, at::TensorOptions().dtype(dtype))) {
    matrix_.fill_(0.5);
  }

  [[nodiscard]] at::Tensor& operator*() { return matrix_; }

 private:
  MappedMemory memory_;
  at::Tensor matrix_;
};

void multiply(Products products, const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  if (products == Products::LibTorch) {
    at::mm_out(out, a, b);
  } else {
    product_out(out, a, b);
  }
}

double rate_of(int64_t size, at::ScalarType dtype, Products products) {
  MappedMatrix a(size, dtype);
  MappedMatrix b(size, dtype);
  MappedMatrix c(size, dtype);
  const double flops = 2.0 * static_cast<double>(size * size * size);
  const int repeats = std::max(kFewest, static_cast<int>(kFlopsOfOneSize / flops));
  multiply(products, *a, *b, *c);  // the first one packs and compiles
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    multiply(products, *a, *b, *c);
    seconds.push_back(seconds_since(begin));
  }
  return flops / median(std::move(seconds));
}

}  // namespace

double GemmRate::middle() const {
  std::array<double, 3> sorted = flops_per_second;
  std::sort(sorted.begin(), sorted.end());
  return sorted[1];
}

GemmRate measure_gemm_rate(at::ScalarType dtype, Products products) {
  const c10::InferenceMode no_autograd;
  GemmRate rate;
  for (size_t i = 0; i < GemmRate::kSizes.size(); ++i) {
    rate.flops_per_second[i] = rate_of(GemmRate::kSizes[i], dtype, products);
  }
  return rate;
}

}  // namespace ciuic::core
