// SPDX-License-Identifier: MIT
#include "orthogonal.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace ciuic::plugins::muon {
namespace {

// Of Keller Jordan's Muon: the quintic a x + b x^3 + c x^5 with the steepest slope at 0 whose
// iterates stay near 1.
constexpr double kA = 3.4445;
constexpr double kB = -4.7750;
constexpr double kC = 2.0315;
constexpr int kIterations = 5;
constexpr double kEpsilon = 1e-7;  // added to the norm: a matrix of zeros stays one

constexpr ciuic_device kHost{CIUIC_DEVICE_CPU, 0};

size_t bytes_for(int64_t elements) { return static_cast<size_t>(elements) * sizeof(float); }

Tensor view(const Buffer& buffer, int64_t rows, int64_t columns) {
  return Tensor(buffer.data(), kF32, {rows, columns});
}

/// By its Frobenius norm, so that no singular value is above 1.
void normalise(float* x, int64_t count) {
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    squares += static_cast<double>(x[i]) * x[i];
  }
  const auto factor = static_cast<float>(1 / (std::sqrt(squares) + kEpsilon));
  for (int64_t i = 0; i < count; ++i) {
    x[i] *= factor;
  }
}

}  // namespace

Orthogonaliser::Orthogonaliser(const Host& host, const ciuic_tensor_service& service,
                               int64_t largest, int64_t largest_side)
    : host_(host),
      service_(service),
      x_(host, kHost, bytes_for(largest)),
      next_(host, kHost, bytes_for(largest)),
      square_(host, kHost, bytes_for(largest_side * largest_side)),
      polynomial_(host, kHost, bytes_for(largest_side * largest_side)) {}

void Orthogonaliser::multiply(const Tensor& a, const Tensor& b, const Tensor& out, double alpha,
                              double beta, uint32_t flags) const {
  ciuic_gemm g{};
  g.struct_size = sizeof(g);
  g.flags = flags;
  g.alpha = alpha;
  g.beta = beta;
  g.a = a.ptr();
  g.b = b.ptr();
  g.out = out.ptr();
  host_.check(service_.gemm(service_.ctx, &g, nullptr));
}

/// X = a X + (b A + c A A) X with A = X X^T; from the other side where X is tall, so that A has the
/// shorter side.
void Orthogonaliser::iterate(int64_t rows, int64_t columns) {
  const bool is_tall = rows > columns;
  const int64_t side = std::min(rows, columns);
  const Tensor x = view(x_, rows, columns);
  const Tensor next = view(next_, rows, columns);
  const Tensor square = view(square_, side, side);
  const Tensor polynomial = view(polynomial_, side, side);
  multiply(x, x, square, 1, 0, is_tall ? CIUIC_GEMM_TRANS_A : CIUIC_GEMM_TRANS_B);
  std::memcpy(polynomial_.data(), square_.data(), bytes_for(side * side));
  multiply(square, square, polynomial, kC, kB, 0);
  std::memcpy(next_.data(), x_.data(), bytes_for(rows * columns));
  multiply(is_tall ? x : polynomial, is_tall ? polynomial : x, next, 1, kA, 0);
  std::swap(x_, next_);
}

const float* Orthogonaliser::run(int64_t rows, int64_t columns) {
  normalise(input(), rows * columns);
  for (int i = 0; i < kIterations; ++i) {
    iterate(rows, columns);
  }
  return input();
}

}  // namespace ciuic::plugins::muon
