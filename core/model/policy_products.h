// SPDX-License-Identifier: MIT
#pragma once

// Products that a precision policy computes itself: what a layer hands over in place of calling
// product.h.
//
// A linear module y = x W^T, W [out, in], has three: forward, the gradient of its input, and the
// gradient of its weight. A policy takes them one by one; what it does not take stays with
// product.h, at the price of one comparison with null.

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace ciuic::core {

/// The numbers of CIUIC_GEMM_.
enum class ProductPass : uint32_t { Forward = 1, GradInput = 2, GradWeight = 3 };

/// out (+)= x W^T, dy W or dy^T x. Matrices as the layer has them: x [N, in], W [out, in],
/// dy [N, out]; rows may be apart.
struct PolicyProduct {
  ProductPass pass;
  uint32_t module;
  at::Tensor out, a, b;  // a: x, dy, dy;  b: W, W, x
  bool adds = false;
  /// int64 [groups], or undefined: rows are sorted by group, each ends here, and W (as b, or as out
  /// of GradWeight) is [groups, out, in].
  at::Tensor group_ends;
};

class PolicyProducts {
 public:
  PolicyProducts() = default;
  PolicyProducts(const PolicyProducts&) = delete;
  PolicyProducts& operator=(const PolicyProducts&) = delete;
  virtual ~PolicyProducts() = default;
  /// Throws what the policy reports.
  virtual void compute(const PolicyProduct& product) const = 0;
  /// A unit of this micro-batch comes next.
  virtual void at_micro_batch(uint32_t /*index*/) const {}
};

/// A module and the passes that the policy takes, bits 1 << pass.
struct ModuleHook {
  const PolicyProducts* products = nullptr;
  uint32_t module = 0;
  uint32_t passes = 0;
  /// Of the module that stands for this one in all experts of its layer.
  uint32_t group_module = 0;
  uint32_t group_passes = 0;

  [[nodiscard]] bool takes(ProductPass pass) const {
    return (passes >> static_cast<uint32_t>(pass) & 1U) != 0;
  }
  [[nodiscard]] bool takes_groups(ProductPass pass) const {
    return (group_passes >> static_cast<uint32_t>(pass) & 1U) != 0;
  }
};

}  // namespace ciuic::core
