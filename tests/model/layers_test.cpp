// SPDX-License-Identifier: MIT
// Each layer's backward against autograd in f64, one at a time, so that a failure names its layer.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "core/model/head.h"
#include "core/model/kernels/embedding.h"
#include "core/model/kernels/rms_norm.h"
#include "core/model/latent_attention.h"
#include "core/model/mixture_of_experts.h"
#include "core/model/swiglu_mlp.h"
#include "tests/model/oracle.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

// f64, sums in another order.
constexpr double kTolerance = 1e-11;
constexpr int64_t kSequences = 2;
constexpr int64_t kTokens = 9;

RouterPass router_pass(const at::Tensor& bias_E) {
  RouterPass pass;
  pass.bias_E = bias_E;
  return pass;
}

// The parameters of layer 1, a mixture, and an oracle on copies of them.
class Layers : public ::testing::Test {
 protected:
  Layers()
      : parameters_(config_, at::kDouble),
        inputs_(leaves(parameters_.values())),
        oracle_(config_, inputs_) {
    x_ = normal("x", {kSequences * kTokens, config_.hidden_size});
    dy_ = normal("dy", x_.sizes().vec());
    x_leaf_ = leaf(x_);
  }

  /// Expected: d sum(y dy) / d input, for x and the parameters under `prefix`.
  void expect_gradients(const at::Tensor& y, const at::Tensor& dx, const std::string& prefix,
                        double factor = 1) {
    Named wanted{{"x", x_leaf_}};
    for (const auto& [name, tensor] : inputs_) {
      if (name.starts_with(prefix)) {
        wanted[name] = tensor;
      }
    }
    const Named expected = gradients(y.mul(dy_.view_as(y)).sum(), wanted);
    EXPECT_LT(relative_error(dx, expected.at("x")), kTolerance);
    for (const auto& [name, gradient] : expected) {
      if (name != "x") {
        EXPECT_LT(relative_error(parameters_.gradient(name), gradient.mul(factor)), kTolerance)
            << name;
      }
    }
  }

  ModelConfig config_ = small_config();
  TestParameters parameters_;
  Named inputs_;
  Oracle oracle_;
  at::Tensor x_, dy_, x_leaf_;
};

TEST_F(Layers, RmsNorm) {
  const std::string name = "model.layers.1.input_layernorm";
  const Bound bound = parameters_.bind(2, true)[0];
  const auto [y, rstd] = kernels::rms_norm(x_, bound.value, config_.rms_norm_eps);
  const at::Tensor dx = at::empty_like(x_);
  accumulate(bound, kernels::rms_norm_backward_out(dx, dy_, x_, rstd, bound.value, {}));
  const at::Tensor expected = oracle_.rms_norm(x_leaf_, name, config_.rms_norm_eps);
  EXPECT_LT(relative_error(y, expected), kTolerance);
  expect_gradients(expected, dx, name);
}

TEST_F(Layers, DenseSwiglu) {
  const std::vector<Bound> bound = parameters_.bind(1, true);
  const Bindings weights = Bindings(bound).last(3);
  SwigluTape tape;
  const at::Tensor residual = normal("residual", x_.sizes().vec());
  const at::Tensor y = swiglu_mlp_forward(weights, x_, residual, &tape);
  const at::Tensor dx = swiglu_mlp_backward(weights, dy_, tape);
  EXPECT_FALSE(tape.x_ND.defined());
  const at::Tensor expected = oracle_.swiglu(x_leaf_, "model.layers.0.mlp.");
  EXPECT_LT(relative_error(y, expected.add(residual)), kTolerance);
  expect_gradients(expected, dx, "model.layers.0.mlp.");
}

// Gate and up apart in memory take two products, with the same result.
TEST_F(Layers, DenseSwigluWithWeightsApart) {
  std::vector<Bound> bound = parameters_.bind(1, true);
  const Bindings weights = Bindings(bound).last(3);
  SwigluTape tape;
  const at::Tensor together = swiglu_mlp_forward(weights, x_, x_, &tape);
  const at::Tensor dx = swiglu_mlp_backward(weights, dy_, tape);
  std::vector<Bound> apart;
  for (const Bound& one : weights) {
    apart.push_back({one.value.clone(), at::zeros_like(one.value), true});
  }
  const at::Tensor separate = swiglu_mlp_forward(apart, x_, x_, &tape);
  EXPECT_LT(relative_error(separate, together), kTolerance);
  EXPECT_LT(relative_error(swiglu_mlp_backward(apart, dy_, tape), dx), kTolerance);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_LT(relative_error(apart[i].grad, weights[i].grad), kTolerance);
  }
}

TEST_F(Layers, LatentAttention) {
  const std::vector<Bound> bound = parameters_.bind(2, true);
  const Bindings weights = Bindings(bound).subspan(1, 7);
  const LatentAttention attention(config_);
  Rotary rotary(config_, at::kDouble, at::kCPU);
  const Rows rows = whole_rows(kSequences, kTokens);
  rotary.reserve(kTokens);
  LatentAttentionTape tape;
  const at::Tensor residual = normal("residual", x_.sizes().vec());
  const at::Tensor y = attention.forward(weights, x_, residual, rows, rotary, &tape);
  const at::Tensor dx = attention.backward(weights, dy_, rows, rotary, tape);
  const at::Tensor expected =
      oracle_.attention(x_leaf_.view({kSequences, kTokens, -1}), "model.layers.1.self_attn.")
          .flatten(0, 1);
  EXPECT_LT(relative_error(y, expected.add(residual)), kTolerance);
  expect_gradients(expected, dx, "model.layers.1.self_attn.");
}

TEST_F(Layers, MixtureOfExperts) {
  const std::vector<Bound> bound = parameters_.bind(2, true);
  const Bindings weights = Bindings(bound).subspan(2 + 7);
  const MixtureOfExperts mixture(config_);
  const at::Tensor residual = normal("residual", x_.sizes().vec());
  const at::Tensor bias = at::zeros({config_.n_routed_experts});
  MixtureTape tape;
  const at::Tensor y = mixture.forward(weights, x_, residual, router_pass(bias), &tape);
  const at::Tensor dx = mixture.backward(weights, dy_, {}, tape);
  const at::Tensor expected = oracle_.mixture(x_leaf_, "model.layers.1.mlp.");
  EXPECT_LT(relative_error(y, expected.add(residual)), kTolerance);
  expect_gradients(expected, dx, "model.layers.1.mlp.");
}

// With a bias that keeps tokens away from experts 0 to 3, their views still get written, and what
// they hold stays.
TEST_F(Layers, MixtureOfExpertsWithIdleExperts) {
  const MixtureOfExperts mixture(config_);
  const at::Tensor bias = at::zeros({config_.n_routed_experts});
  bias.narrow(0, 0, 4).fill_(-12);
  const auto run = [&](bool overwrite) {
    const std::vector<Bound> bound = parameters_.bind(2, overwrite);
    const Bindings weights = Bindings(bound).subspan(2 + 7);
    MixtureTape tape;
    mixture.forward(weights, x_, x_, router_pass(bias), &tape);
    EXPECT_EQ(tape.plan.counts[0] + tape.plan.counts[1] + tape.plan.counts[2] + tape.plan.counts[3],
              0);
    mixture.backward(weights, dy_, {}, tape);
  };
  run(true);
  const at::Tensor& idle = parameters_.gradient("model.layers.1.mlp.experts.2.up_proj.weight");
  const at::Tensor& busy = parameters_.gradient("model.layers.1.mlp.experts.5.up_proj.weight");
  EXPECT_TRUE(idle.eq(0).all().item<bool>());
  idle.fill_(7);
  const at::Tensor once = busy.clone();
  run(false);
  EXPECT_TRUE(idle.eq(7).all().item<bool>());
  EXPECT_LT(relative_error(busy, once.mul(2)), kTolerance);
}

TEST_F(Layers, MixtureWithoutWantedGradients) {
  const std::vector<Bound> bound = parameters_.bind_values(2);
  const Bindings weights = Bindings(bound).subspan(2 + 7);
  const MixtureOfExperts mixture(config_);
  MixtureTape tape;
  mixture.forward(weights, x_, x_, router_pass(at::zeros({config_.n_routed_experts})), &tape);
  const at::Tensor dx = mixture.backward(weights, dy_, {}, tape);
  expect_gradients(oracle_.mixture(x_leaf_, "model.layers.1.mlp."), dx, "none of them");
}

TEST_F(Layers, Embedding) {
  const at::Tensor tokens = some_tokens(1, kSequences * kTokens, config_.vocab_size).flatten();
  const at::Tensor table = leaf(parameters_.value("model.embed_tokens.weight"));
  const Named expected =
      gradients(table.index_select(0, tokens).mul(dy_).sum(), {{"table", table}});
  const at::Tensor gradient = at::zeros_like(parameters_.value("model.embed_tokens.weight"));
  kernels::add_rows_at_(gradient, tokens, dy_);
  EXPECT_LT(relative_error(gradient, expected.at("table")), kTolerance);
}

TEST_F(Layers, HeadLossOverSeveralChunks) {
  ModelConfig wide = config_;
  wide.vocab_size = 9000;  // chunks of 64 tokens in f64
  const Head head(wide);
  const int64_t rows = 150;
  EXPECT_LT(head.chunk_tokens(8), rows / 2);
  const at::Tensor hidden = normal("hidden", {1, rows, wide.hidden_size});
  const at::Tensor targets = some_tokens(1, rows, wide.vocab_size);
  targets.narrow(1, 3, 70).fill_(kIgnoredTarget);
  const at::Tensor norm = normal("norm", {wide.hidden_size}).mul(0.1).add(1);
  const at::Tensor matrix = normal("matrix", {wide.vocab_size, wide.hidden_size});
  const std::vector<Bound> bound = {{norm, at::zeros_like(norm), true},
                                    {matrix, at::zeros_like(matrix), true}};

  const Named in{{"hidden", leaf(hidden)},
                 {"model.norm.weight", leaf(norm)},
                 {"lm_head.weight", leaf(matrix)}};
  const Oracle oracle(wide, in);
  const at::Tensor logits =
      at::matmul(oracle.rms_norm(in.at("hidden"), "model.norm", wide.rms_norm_eps),
                 in.at("lm_head.weight").t());
  const at::Tensor loss = oracle.loss_sum(logits, targets);
  const Named expected = gradients(loss, in);

  const HeadGradient result = head.loss_and_backward(bound, hidden, targets, 0.5);
  EXPECT_NEAR(result.loss_sum, loss.item<double>(), 1e-9);
  EXPECT_EQ(result.num_tokens, rows - 70);
  EXPECT_LT(relative_error(result.dhidden, expected.at("hidden").mul(0.5)), kTolerance);
  EXPECT_LT(relative_error(bound[0].grad, expected.at("model.norm.weight").mul(0.5)), kTolerance);
  EXPECT_LT(relative_error(bound[1].grad, expected.at("lm_head.weight").mul(0.5)), kTolerance);

  const HeadLoss plain = head.loss(bound, hidden, targets);
  EXPECT_EQ(plain.loss_sum, result.loss_sum);
  EXPECT_EQ(plain.num_tokens, result.num_tokens);
  EXPECT_LT(relative_error(head.logits(bound, hidden), logits), kTolerance);
}

}  // namespace
}  // namespace ciuic::core::testing
