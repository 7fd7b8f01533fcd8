// SPDX-License-Identifier: MIT
#include "core/train/tensor_service.h"

#include <cmath>
#include <limits>

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "core/plugin/host_context.h"
#include "core/train/tensor_bridge.h"

namespace ciuic::core {
namespace {

struct TensorServiceTest : ::testing::Test {
  Log log{Log::Options{0, 1, LogLevel::Off, "", false}};
  HostContext context{"tested", log};
  TensorService service{context.table()};
  const ciuic_tensor_service& t = service.table();
};

TEST_F(TensorServiceTest, CopyCasts) {
  const at::Tensor in = at::randn({1000});
  at::Tensor out = at::empty({1000}, at::kBFloat16);
  const Tensor a = to_abi(in);
  const Tensor b = to_abi(out);
  ASSERT_EQ(t.copy(t.ctx, a.ptr(), b.ptr(), nullptr), nullptr);
  EXPECT_TRUE(at::equal(out, in.to(at::kBFloat16)));
}

TEST_F(TensorServiceTest, AddIsAxpby) {
  const at::Tensor in = at::full({10}, 3.0);
  at::Tensor out = at::full({10}, 5.0);
  ASSERT_EQ(t.add(t.ctx, 2.0, to_abi(in).ptr(), 0.5, to_abi(out).ptr(), nullptr), nullptr);
  EXPECT_TRUE(at::equal(out, at::full({10}, 8.5)));
}

TEST_F(TensorServiceTest, StatsAddSquaresInDoubleAndCountNonFinite) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    at::Tensor in = at::full({1001}, 3.0, type);
    at::Tensor out = at::full({2}, 1.0, at::kDouble);
    ASSERT_EQ(t.stats(t.ctx, to_abi(in).ptr(), to_abi(out).ptr(), nullptr), nullptr);
    EXPECT_EQ(out[0].item<double>(), 1.0 + 9.0 * 1001);
    EXPECT_EQ(out[1].item<double>(), 1.0);
    in[7] = std::numeric_limits<float>::infinity();
    in[1000] = std::nan("");
    out.zero_();
    ASSERT_EQ(t.stats(t.ctx, to_abi(in).ptr(), to_abi(out).ptr(), nullptr), nullptr);
    EXPECT_EQ(out[1].item<double>(), 2.0);
  }
}

TEST_F(TensorServiceTest, LargeGradientsDoNotOverflowTheirNorm) {
  const at::Tensor in = at::full({100}, 1e30);
  at::Tensor out = at::zeros({2}, at::kDouble);
  ASSERT_EQ(t.stats(t.ctx, to_abi(in).ptr(), to_abi(out).ptr(), nullptr), nullptr);
  EXPECT_NEAR(out[0].item<double>() / 1e62, 1.0, 1e-6);  // 1e30 itself is rounded to fp32
  EXPECT_EQ(out[1].item<double>(), 0.0);
}

TEST_F(TensorServiceTest, PlainProducts) {
  const at::Tensor a = at::randn({4, 3});
  const at::Tensor b = at::randn({5, 3});
  at::Tensor out = at::ones({4, 5});
  const Tensor abi_a = to_abi(a);
  const Tensor abi_b = to_abi(b);
  const Tensor abi_out = to_abi(out);
  ciuic_gemm g{};
  g.struct_size = sizeof(g);
  g.flags = CIUIC_GEMM_TRANS_B;
  g.alpha = 2;
  g.beta = 1;
  g.a = abi_a.ptr();
  g.b = abi_b.ptr();
  g.out = abi_out.ptr();
  ASSERT_EQ(t.gemm(t.ctx, &g, nullptr), nullptr);
  EXPECT_TRUE(at::allclose(out, at::mm(a, b.t()).mul(2).add(1)));
  g.pass = CIUIC_GEMM_FORWARD;
  EXPECT_EQ(Host(context.table()).take(t.gemm(t.ctx, &g, nullptr)).code(), CIUIC_UNIMPLEMENTED);
}

}  // namespace
}  // namespace ciuic::core
