// SPDX-License-Identifier: MIT
// Each CPU kernel against the composition of LibTorch operations beside it, in every dtype.
#include <cmath>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "core/model/expert_plan.h"
#include "core/model/kernels/cross_entropy.h"
#include "core/model/kernels/dtypes.h"
#include "core/model/kernels/embedding.h"
#include "core/model/kernels/expert_rows.h"
#include "core/model/kernels/mla_heads.h"
#include "core/model/kernels/rms_norm.h"
#include "core/model/kernels/swiglu.h"
#include "core/model/rotary.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

using at::Tensor;

ModelConfig rope_config(int64_t rope_dim, bool is_interleaved = true) {
  ModelConfig config;
  config.qk_rope_head_dim = rope_dim;
  config.rope_interleave = is_interleaved;
  return config;
}

class Kernels : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  Tensor random(std::string_view name, std::vector<int64_t> shape, double deviation = 1.0) const {
    return normal(name, std::move(shape), deviation, GetParam());
  }
  Tensor random_wide(std::string_view name, std::vector<int64_t> shape) const {
    return normal(name, std::move(shape), 1.0, wide());
  }
  at::ScalarType wide() const { return kernels::accumulate_dtype(GetParam()); }
  /// Sums in another order; in bf16 a result may round to the neighbouring value, one part in 256
  /// of one element, in f16 one in 2048.
  double tolerance() const {
    switch (GetParam()) {
      case at::kDouble:
        return 1e-13;
      case at::kFloat:
        return 1e-6;
      default:
        return GetParam() == at::kHalf ? 3e-4 : 2e-3;
    }
  }
  /// Of two roundings in a row.
  double rounding() const {
    return GetParam() == at::kBFloat16 ? 5e-3 : GetParam() == at::kHalf ? 7e-4 : 1e-6;
  }
  void expect_close(const Tensor& fast, const Tensor& plain) const {
    EXPECT_EQ(fast.scalar_type(), plain.scalar_type());
    EXPECT_EQ(fast.sizes(), plain.sizes());
    EXPECT_LT(relative_error(fast, plain), tolerance());
  }
};

TEST_P(Kernels, RmsNorm) {
  const Tensor wide_rows = random("x", {150, 50});
  const Tensor x = wide_rows.narrow(1, 0, 37);  // rows apart, as in the key/value latent
  const Tensor weight = random_wide("w", {37});
  const auto fast = kernels::cpu::rms_norm(x, weight, 1e-6);
  const auto plain = kernels::reference::rms_norm(x, weight, 1e-6);
  expect_close(fast.y_ND, plain.y_ND);
  expect_close(fast.rstd_N, plain.rstd_N);

  const Tensor dy = random("dy", {150, 37});
  for (const Tensor& residual : {Tensor(), random("residual", {150, 37})}) {
    Tensor fast_dx = at::zeros({150, 50}, x.options());
    Tensor plain_dx = at::zeros({150, 50}, x.options());
    const Tensor fast_dw = kernels::cpu::rms_norm_backward_out(fast_dx.narrow(1, 0, 37), dy, x,
                                                               fast.rstd_N, weight, residual);
    const Tensor plain_dw = kernels::reference::rms_norm_backward_out(
        plain_dx.narrow(1, 0, 37), dy, x, plain.rstd_N, weight, residual);
    expect_close(fast_dx, plain_dx);
    expect_close(fast_dw, plain_dw);
  }
}

TEST_P(Kernels, Swiglu) {
  const Tensor gate_up = random("gate_up", {33, 2 * 19}, 3.0);
  const Tensor da = random("da", {33, 19});
  expect_close(kernels::cpu::swiglu(gate_up), kernels::reference::swiglu(gate_up));
  for (const Tensor& weights : {Tensor(), random_wide("weights", {33})}) {
    const Tensor fast[] = {gate_up.clone(), da.clone()};
    const Tensor plain[] = {gate_up.clone(), da.clone()};
    const Tensor fast_dw = kernels::cpu::swiglu_backward_(fast[0], fast[1], weights);
    const Tensor plain_dw = kernels::reference::swiglu_backward_(plain[0], plain[1], weights);
    expect_close(fast[0], plain[0]);
    expect_close(fast[1], plain[1]);
    ASSERT_EQ(fast_dw.defined(), weights.defined());
    if (weights.defined()) {
      expect_close(fast_dw, plain_dw);
    }
  }
}

TEST_P(Kernels, SwigluIsFiniteAtTheEnds) {
  const Tensor gate_up = at::full({1, 8}, 1.0, at::TensorOptions().dtype(GetParam()));
  gate_up.narrow(1, 0, 2).fill_(-300.0);
  gate_up.narrow(1, 2, 2).fill_(300.0);
  const Tensor a = kernels::cpu::swiglu(gate_up).to(at::kDouble);
  EXPECT_NEAR(a[0][0].item<double>(), 0, 1e-30);
  EXPECT_NEAR(a[0][2].item<double>(), 300, 1.0);
}

TEST_P(Kernels, CrossEntropy) {
  const Tensor logits = random("logits", {41, 259}, 4.0);
  const Tensor targets = some_tokens(1, 41, 259).flatten();
  targets.narrow(0, 5, 3).fill_(-100);
  expect_close(kernels::cpu::cross_entropy(logits, targets),
               kernels::reference::cross_entropy(logits, targets));
  const Tensor fast = logits.clone();
  const Tensor plain = logits.clone();
  expect_close(kernels::cpu::cross_entropy_backward_(fast, targets, 0.125),
               kernels::reference::cross_entropy_backward_(plain, targets, 0.125));
  expect_close(fast, plain);
}

TEST_P(Kernels, CrossEntropyShowsANaN) {
  const Tensor logits = random("logits", {2, 40});
  logits.select(0, 0).narrow(0, 17, 1).fill_(std::nan(""));
  const Tensor losses =
      kernels::cpu::cross_entropy(logits, at::zeros({2}, at::TensorOptions().dtype(at::kLong)));
  EXPECT_TRUE(std::isnan(losses[0].item<double>()));
  EXPECT_TRUE(std::isfinite(losses[1].item<double>()));
}

TEST_P(Kernels, HeadsOfMla) {
  Rotary rotary(rope_config(6), wide(), at::kCPU);
  rotary.reserve(12);
  const kernels::Angles angles{rotary.cosine(), rotary.sine(), 11, {}};
  const Tensor q = random("q", {22, 3, 10});
  const Tensor fast_q = q.clone();
  const Tensor plain_q = q.clone();
  kernels::cpu::rotate_queries_(fast_q, angles);
  kernels::reference::rotate_queries_(plain_q, angles);
  expect_close(fast_q, plain_q);
  kernels::cpu::rotate_queries_backward_(fast_q, angles);
  kernels::reference::rotate_queries_backward_(plain_q, angles);
  expect_close(fast_q, plain_q);
  EXPECT_LT(relative_error(fast_q, q), rounding());  // there and back

  const Tensor kv = random("kv", {22, 3, 4 + 5});
  const Tensor latent_rope = random("latent", {22, 7 + 6});
  expect_close(kernels::cpu::assemble_keys(kv, latent_rope, 4, angles),
               kernels::reference::assemble_keys(kv, latent_rope, 4, angles));
  const Tensor dk = random("dk", {22, 3, 10});
  const Tensor fast[] = {at::zeros_like(kv), at::zeros_like(latent_rope)};
  const Tensor plain[] = {at::zeros_like(kv), at::zeros_like(latent_rope)};
  kernels::cpu::assemble_keys_backward_(fast[0], fast[1], dk, angles);
  kernels::reference::assemble_keys_backward_(plain[0], plain[1], dk, angles);
  expect_close(fast[0], plain[0]);
  expect_close(fast[1], plain[1]);
}

TEST_P(Kernels, ExpertRows) {
  const Tensor experts =
      at::tensor(std::vector<int32_t>{2, 0, 0, 3, 3, 2, 2, 0, 0, 2}).view({5, 2});
  for (const int64_t multiple : {1, 4}) {
    const ExpertPlan plan = plan_experts(experts, 4, multiple);
    EXPECT_EQ(plan.counts, (std::vector<int64_t>{4, 0, 4, 2}));
    EXPECT_EQ(plan.group_rows(1), 0);
    EXPECT_EQ(plan.group_rows(3), multiple == 4 ? 4 : 2);
    const Tensor x = random("x", {5, 300});
    const Tensor rows = kernels::cpu::gather_rows(x, plan.token_of_row_R);
    EXPECT_TRUE(same_bits(rows, kernels::reference::gather_rows(x, plan.token_of_row_R)));
    for (const Tensor& weights : {Tensor(), random_wide("weights", {5, 2})}) {
      const Tensor fast = x.clone();
      const Tensor plain = x.clone();
      kernels::cpu::combine_rows_(fast, rows, plan.row_of_choice_NK, weights);
      kernels::reference::combine_rows_(plain, rows, plan.row_of_choice_NK, weights);
      expect_close(fast, plain);
    }
    const Tensor values = random_wide("values", {5, 2});
    const Tensor at_rows = kernels::choices_to_rows(values, plan.row_of_choice_NK, plan.num_rows());
    EXPECT_TRUE(same_bits(kernels::rows_to_choices(at_rows, plan.row_of_choice_NK), values));
  }
}

TEST_P(Kernels, EmbeddingGradient) {
  const Tensor tokens = some_tokens(1, 60, 7).flatten();
  const Tensor rows = random("rows", {60, 70});
  const Tensor fast = normal("gradient", {7, 70}, 1.0, wide());
  const Tensor plain = fast.clone();
  kernels::cpu::add_rows_at_(fast, tokens, rows);
  kernels::reference::add_rows_at_(plain, tokens, rows);
  EXPECT_LT(relative_error(fast, plain), GetParam() == at::kDouble ? 1e-13 : 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Kernels,
                         ::testing::Values(at::kFloat, at::kDouble, at::kBFloat16, at::kHalf),
                         [](const auto& dtype) { return std::string(c10::toString(dtype.param)); });

// Field bug B066: head dim 4, base 10000, position 1. Half-split code would give (0.5403, 0,
// 0.8415, 0).
TEST(Rotary, FieldB066TurnsAdjacentPairs) {
  Rotary rotary(rope_config(4), at::kFloat, at::kCPU);
  rotary.reserve(2);
  const kernels::Angles angles{rotary.cosine(), rotary.sine(), 2, {}};
  const Tensor x = at::tensor(std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0,    // position 0
                                                 1, 0, 0, 0, 0, 1, 0, 0});  // position 1
  const Tensor expected =
      at::tensor(std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0,  //
                                    0.540302f, 0.841471f, 0, 0, -0.841471f, 0.540302f, 0, 0});
  const Tensor q = x.view({2, 2, 4});
  kernels::rotate_queries_(q, angles);
  EXPECT_LT(relative_error(q.flatten(), expected), 1e-6);

  const Tensor second = at::tensor(std::vector<float>{0, 0, 0, 0, 0, 0, 1, 0}).view({2, 1, 4});
  kernels::rotate_queries_(second, angles);
  EXPECT_NEAR(second[1][0][2].item<float>(), 0.99995, 1e-6);
  EXPECT_NEAR(second[1][0][3].item<float>(), 0.0099998, 1e-6);
}

TEST(Rotary, FieldB066TurnsHalvesApartWhereTheConfigurationSaysSo) {
  Rotary rotary(rope_config(4, /*is_interleaved=*/false), at::kFloat, at::kCPU);
  rotary.reserve(2);
  const kernels::Angles angles{rotary.cosine(), rotary.sine(), 2, {}, rotary.is_interleaved()};
  const Tensor x = at::tensor(std::vector<float>{1, 0, 0, 0, 0, 1, 0, 0,    // position 0
                                                 1, 0, 0, 0, 0, 1, 0, 0});  // position 1
  const Tensor expected =
      at::tensor(std::vector<float>{1, 0, 0, 0, 0, 1, 0, 0,  //
                                    0.540302f, 0, 0.841471f, 0, 0, 0.99995f, 0, 0.0099998f});
  const Tensor q = x.view({2, 2, 4});
  kernels::rotate_queries_(q, angles);
  EXPECT_LT(relative_error(q.flatten(), expected), 1e-6);
}

TEST(Rotary, GrowsWithoutChangingWhatItHolds) {
  Rotary rotary(rope_config(8), at::kFloat, at::kCPU);
  rotary.reserve(5);
  const Tensor before = rotary.sine().clone();
  rotary.reserve(40);
  EXPECT_TRUE(same_bits(rotary.sine().narrow(0, 0, 5), before));
  EXPECT_GE(rotary.sine().size(0), 40);
}

}  // namespace
}  // namespace ciuic::core::testing
