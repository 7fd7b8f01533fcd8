// SPDX-License-Identifier: MIT
// The own f32 product against LibTorch's, over shapes that fill tiles and panels, end inside them,
// and need several stretches of depth.
#include "core/model/product.h"

#include <cmath>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include "core/model/gradient.h"
#include "core/model/kernels/cpu_product.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

struct Shape {
  int64_t rows, width, depth;
};

class Product : public ::testing::TestWithParam<Shape> {};

// f32 sums in another order, or with another rounding between: a few units in the last place.
constexpr double kTolerance = 5e-7;

at::Tensor matrix(const char* name, int64_t rows, int64_t columns, bool is_transposed) {
  return is_transposed ? normal(name, {columns, rows}, 1.0, at::kFloat).t()
                       : normal(name, {rows, columns}, 1.0, at::kFloat);
}

TEST_P(Product, AgreesWithLibTorch) {
  const auto [rows, width, depth] = GetParam();
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      const at::Tensor a = matrix("a", rows, depth, a_transposed);
      const at::Tensor b = matrix("b", depth, width, b_transposed);
      for (const bool adds : {false, true}) {
        // Rows apart, with a margin that must stay as it is.
        const at::Tensor fast = normal("c", {rows, width + 3}, 1.0, at::kFloat);
        const at::Tensor plain = fast.clone();
        product_out(fast.narrow(1, 0, width), a, b, adds);
        reference::product_out(plain.narrow(1, 0, width), a, b, adds);
        EXPECT_LT(relative_error(fast, plain), kTolerance) << a_transposed << b_transposed << adds;
        EXPECT_TRUE(same_bits(fast.narrow(1, width, 3), plain.narrow(1, width, 3)));
      }
    }
  }
}

TEST_P(Product, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto [rows, width, depth] = GetParam();
  const at::Tensor a = matrix("a", rows, depth, false);
  const at::Tensor b = matrix("b", depth, width, true);
  if (!kernels::has_cpu_product(a, a, b)) {
    GTEST_SKIP() << "LibTorch's product serves here";
  }
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor alone = product(a, b);
  at::set_num_threads(3);
  const at::Tensor shared = product(a, b);
  at::set_num_threads(threads);
  EXPECT_TRUE(same_bits(alone, shared));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Product,
                         ::testing::Values(Shape{1, 1, 1}, Shape{14, 32, 8}, Shape{15, 33, 257},
                                           Shape{13, 31, 256}, Shape{300, 47, 600},
                                           Shape{29, 160, 16}, Shape{250, 270, 300}));

TEST(Product, OfNothingIsZero) {
  const at::Tensor out = normal("out", {3, 4}, 1.0, at::kFloat);
  product_out(out, at::empty({3, 0}), at::empty({0, 4}));
  EXPECT_TRUE(out.eq(0).all().item<bool>());
  EXPECT_EQ(product(at::empty({0, 5}), at::empty({5, 2})).numel(), 0);
}

TEST(Gradient, IsWrittenOrAdded) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const at::Tensor dy = normal("dy", {20, 6}, 1.0, dtype);
    const at::Tensor x = normal("x", {20, 5}, 1.0, dtype);
    const at::Tensor expected = dy.to(at::kDouble).t().matmul(x.to(at::kDouble));
    const at::ScalarType wide = dtype == at::kDouble ? at::kDouble : at::kFloat;
    Bound bound{normal("w", {6, 5}, 1.0, dtype),
                at::full({6, 5}, std::nan(""), at::TensorOptions().dtype(wide)), true};
    accumulate_product(bound, dy, x);
    EXPECT_LT(relative_error(bound.grad, expected), dtype == at::kBFloat16 ? 5e-3 : 1e-6);
    bound.overwrite = false;
    accumulate_product(bound, dy, x);
    EXPECT_LT(relative_error(bound.grad, expected.mul(2)), dtype == at::kBFloat16 ? 5e-3 : 1e-6);
    accumulate_nothing(bound);
    EXPECT_LT(relative_error(bound.grad, expected.mul(2)), dtype == at::kBFloat16 ? 5e-3 : 1e-6);
    bound.overwrite = true;
    accumulate_nothing(bound);
    EXPECT_TRUE(bound.grad.eq(0).all().item<bool>());
  }
}

}  // namespace
}  // namespace ciuic::core::testing
