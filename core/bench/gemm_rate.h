// SPDX-License-Identifier: MIT
//
// The rate of LibTorch's matrix product in this process: what a training step is held against.
#pragma once

#include <array>
#include <cstdint>

#include <c10/core/ScalarType.h>

namespace ciuic::core {

struct GemmRate {
  static constexpr std::array<int64_t, 3> kSizes{512, 1024, 2048};

  std::array<double, 3> flops_per_second{};  // of each size: the median of several products

  /// The middle one: small enough not to be limited by memory, large enough not to be by overhead.
  [[nodiscard]] double middle() const;
};

/// LibTorch's at::mm, which a step is held against, or the products that our layers use, which may
/// be faster (docs/decisions/0007-own-products-on-amd.md).
enum class Products { LibTorch, Own };

/// Square products with the threads that this process has. The matrices are mapped and unmapped, so
/// that they leave nothing in the heap.
GemmRate measure_gemm_rate(at::ScalarType dtype, Products products = Products::LibTorch);

}  // namespace ciuic::core
