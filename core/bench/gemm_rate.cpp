// SPDX-License-Identifier: MIT
#include "core/bench/gemm_rate.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>

#include "core/log/failure.h"
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
      : bytes_(static_cast<size_t>(size * size) * c10::elementSize(dtype)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) {
      throw Failure(
          ExitCode::Environment,
          std::string("no memory for the matrices of the GEMM rate: ") + std::strerror(errno));
    }
    matrix_ = at::from_blob(memory_, {size, size}, at::TensorOptions().dtype(dtype));
    matrix_.fill_(0.5);
  }
  MappedMatrix(const MappedMatrix&) = delete;
  MappedMatrix& operator=(const MappedMatrix&) = delete;
  ~MappedMatrix() {
    matrix_.reset();
    munmap(memory_, bytes_);
  }

  [[nodiscard]] at::Tensor& operator*() { return matrix_; }

 private:
  size_t bytes_;
  void* memory_;
  at::Tensor matrix_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

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
