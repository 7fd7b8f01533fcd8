// SPDX-License-Identifier: MIT
// The own bf16 product against products in f64, over shapes that fill tiles and panels, end inside
// them, and take several blocks and groups of panels.
#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include "core/model/kernels/cpu_bf16_product.h"
#include "core/model/product.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

struct Shape {
  int64_t rows, width, depth;
};

class Bf16Product : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (!kernels::has_cpu_bf16_products()) {
      GTEST_SKIP() << "LibTorch's product serves here";
    }
  }
};

// f32 sums of exact products, in order: the error is a walk of as many steps as there are products.
double sum_tolerance(int64_t depth) { return 1e-7 + 4e-8 * std::sqrt(static_cast<double>(depth)); }
// One rounding to 8 bits moves an element by half a unit in the last place, 2^-8 of it at most.
constexpr double kRoundingTolerance = 1.001 / 256;

// A matrix as bf16 tensors come: in order, transposed, or every second column of a wider one.
enum class Layout { Rows, Transposed, Apart };

at::Tensor matrix(const char* name, int64_t rows, int64_t columns, Layout layout) {
  switch (layout) {
    case Layout::Transposed:
      return normal(name, {columns, rows}, 1.0, at::kBFloat16).t();
    case Layout::Apart:
      return normal(name, {rows, columns, 2}, 1.0, at::kBFloat16).select(2, 1);
    default:
      return normal(name, {rows, columns}, 1.0, at::kBFloat16);
  }
}

at::Tensor exact(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kDouble).matmul(b.to(at::kDouble));
}

// Adds or writes into rows that are apart, with a margin that must stay as it is.
void expect_agreement(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype, bool adds) {
  const int64_t rows = a.size(0);
  const int64_t width = b.size(1);
  const at::Tensor wide = normal("c", {rows, width + 3}, 1.0, dtype);
  const at::Tensor before = wide.clone();
  const at::Tensor out = wide.narrow(1, 0, width);
  ASSERT_TRUE(kernels::has_cpu_bf16_product(out, a, b));
  at::Tensor expected = exact(a, b);
  if (adds) {
    expected = expected.add(before.narrow(1, 0, width).to(at::kDouble));
  }
  product_out(out, a, b, adds);
  EXPECT_LT(relative_error(out, expected),
            dtype == at::kFloat ? sum_tolerance(a.size(1)) : kRoundingTolerance);
  EXPECT_TRUE(same_bits(wide.narrow(1, width, 3), before.narrow(1, width, 3)));
}

TEST_P(Bf16Product, AgreesWithF64) {
  const auto [rows, width, depth] = GetParam();
  for (const Layout left : {Layout::Rows, Layout::Transposed, Layout::Apart}) {
    for (const Layout right : {Layout::Rows, Layout::Transposed, Layout::Apart}) {
      const at::Tensor a = matrix("a", rows, depth, left);
      const at::Tensor b = matrix("b", depth, width, right);
      for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
        expect_agreement(a, b, dtype, /*adds=*/false);
        expect_agreement(a, b, dtype, /*adds=*/true);
      }
    }
  }
}

TEST_P(Bf16Product, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto [rows, width, depth] = GetParam();
  const int threads = at::get_num_threads();
  for (const Layout layout : {Layout::Rows, Layout::Transposed}) {
    const at::Tensor a = matrix("a", rows, depth, layout);
    const at::Tensor b = matrix("b", depth, width, layout);
    at::set_num_threads(1);
    const at::Tensor alone = product(a, b);
    for (const int count : {2, 3}) {
      at::set_num_threads(count);
      EXPECT_TRUE(same_bits(alone, product(a, b))) << count;
    }
    at::set_num_threads(threads);
  }
}

TEST_P(Bf16Product, OfARowHasTheBitsThatItHasBesideOthers) {
  const auto [rows, width, depth] = GetParam();
  const at::Tensor b = matrix("b", depth, width, Layout::Transposed);
  for (const Layout layout : {Layout::Rows, Layout::Transposed}) {
    const at::Tensor a = matrix("a", rows, depth, layout);
    const at::Tensor last = product(a.narrow(0, rows - 1, 1), b);
    EXPECT_TRUE(same_bits(last, product(a, b).narrow(0, rows - 1, 1).contiguous()));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Bf16Product,
                         ::testing::Values(Shape{1, 1, 1}, Shape{1, 70, 33}, Shape{14, 32, 8},
                                           Shape{15, 33, 257}, Shape{13, 31, 256},
                                           Shape{300, 47, 600}, Shape{29, 160, 16},
                                           Shape{250, 270, 300}, Shape{40, 100, 9000}));

TEST(Bf16ProductOf, BrokenNumbersIsBroken) {
  const at::Tensor a = at::full({3, 5}, std::numeric_limits<double>::quiet_NaN(),
                                at::TensorOptions().dtype(at::kBFloat16));
  const at::Tensor ones = at::full({5, 4}, 1.0, at::TensorOptions().dtype(at::kBFloat16));
  EXPECT_TRUE(product(a, ones).isnan().all().item<bool>());
  const at::Tensor infinite = at::full({3, 5}, std::numeric_limits<double>::infinity(),
                                       at::TensorOptions().dtype(at::kBFloat16));
  EXPECT_TRUE(product(infinite, ones).isinf().all().item<bool>());
}

// What lies beside a last odd element of depth is not read: here it is no number.
TEST(Bf16ProductOf, OddDepthStopsThere) {
  const at::Tensor wide = at::full({20, 8}, std::numeric_limits<double>::quiet_NaN(),
                                   at::TensorOptions().dtype(at::kBFloat16));
  wide.narrow(1, 0, 7).fill_(1);
  const at::Tensor ones = at::full({7, 40}, 1.0, at::TensorOptions().dtype(at::kBFloat16));
  EXPECT_TRUE(product(wide.narrow(1, 0, 7), ones).eq(7).all().item<bool>());
  EXPECT_TRUE(product(ones.t(), wide.narrow(1, 0, 7).t()).eq(7).all().item<bool>());
}

}  // namespace
}  // namespace ciuic::core::testing
