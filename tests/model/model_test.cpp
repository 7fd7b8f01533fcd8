// SPDX-License-Identifier: MIT
// The whole model: against autograd in f64, and what the trainer relies on.
#include "core/model/model.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <ciuic/error.hpp>

#include "core/model/parameter_specs.h"
#include "tests/model/oracle.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

// f64 sums of a few hundred terms in another order than the oracle's.
constexpr double kDoubleTolerance = 1e-11;

at::Tensor targets_with_gaps(int64_t batch, int64_t tokens, int64_t vocab_size) {
  at::Tensor targets = some_tokens(batch, tokens, vocab_size, 2);
  targets.select(0, 0).narrow(0, 1, 2).fill_(kIgnoredTarget);
  return targets;
}

void expect_gradients(const TestParameters& parameters, const Named& expected, double factor,
                      double tolerance) {
  for (const auto& [name, gradient] : expected) {
    EXPECT_LT(relative_error(parameters.gradient(name), gradient.mul(factor)), tolerance) << name;
  }
}

Named inputs_of(const TestParameters& parameters, const Oracle& oracle) {
  Named inputs;
  for (const auto& [name, value] : parameters.values()) {
    inputs[name] = oracle[name];
  }
  return inputs;
}

struct Variant {
  const char* name;
  void (*change)(ModelConfig&);
};

class WholeModel : public ::testing::TestWithParam<Variant> {};

TEST_P(WholeModel, AgreesWithAutogradInDouble) {
  ModelConfig config = small_config();
  GetParam().change(config);
  Model model(config, at::kDouble, at::kCPU);
  TestParameters parameters(config, at::kDouble);
  Named biases;
  for (const auto& [name, bias] : model.expert_biases()) {
    bias.copy_(normal(name, {config.n_routed_experts}, 0.2));
    biases[name] = bias;
  }
  const at::Tensor tokens = some_tokens(2, 9, config.vocab_size);
  const at::Tensor targets = targets_with_gaps(2, 9, config.vocab_size);

  const Oracle oracle(config, leaves(parameters.values()), biases);
  const at::Tensor logits = oracle.logits(tokens);
  const at::Tensor loss = oracle.loss_sum(logits, targets);
  const Named inputs = inputs_of(parameters, oracle);
  const Named expected = gradients(loss, inputs);

  EXPECT_LT(relative_error(run_logits(model, parameters, tokens), logits), kDoubleTolerance);
  const double seed = 0.25;
  const double loss_sum = run_step(model, parameters, tokens, targets, seed, /*overwrite=*/true);
  EXPECT_NEAR(loss_sum, loss.item<double>(), 1e-10);
  expect_gradients(parameters, expected, seed, kDoubleTolerance);

  // A second micro-batch, the same again, adds up.
  run_step(model, parameters, tokens, targets, seed, /*overwrite=*/false);
  expect_gradients(parameters, expected, 2 * seed, kDoubleTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Variants, WholeModel,
    ::testing::Values(
        Variant{"Default", [](ModelConfig&) {}},
        Variant{"OneGroup", [](ModelConfig& c) { c.n_group = c.topk_group = 1; }},
        Variant{"NoSharedExperts", [](ModelConfig& c) { c.n_shared_experts = 0; }},
        Variant{"TwoSharedExperts", [](ModelConfig& c) { c.n_shared_experts = 2; }},
        Variant{"WeightsNotNormalised", [](ModelConfig& c) { c.norm_topk_prob = false; }},
        Variant{"OneExpertPerToken",
                [](ModelConfig& c) { c.num_experts_per_tok = 1, c.norm_topk_prob = false; }},
        Variant{"ValuesAsWideAsQueries", [](ModelConfig& c) { c.v_head_dim = 12; }},
        Variant{"ValuesWiderThanQueries", [](ModelConfig& c) { c.v_head_dim = 16; }},
        Variant{"NoDenseLayers", [](ModelConfig& c) { c.first_k_dense_replace = 0; }},
        Variant{"OnlyDenseLayers", [](ModelConfig& c) { c.first_k_dense_replace = 3; }},
        Variant{"EverySecondLayerHasExperts",
                [](ModelConfig& c) { c.first_k_dense_replace = 0, c.moe_layer_freq = 2; }},
        Variant{"NoQueryLatent", [](ModelConfig& c) { c.q_lora_rank.reset(); }},
        Variant{"Biases", [](ModelConfig& c) { c.attention_bias = true; }},
        Variant{"BiasesWithoutQueryLatent",
                [](ModelConfig& c) { c.attention_bias = true, c.q_lora_rank.reset(); }},
        Variant{"TiedEmbeddings", [](ModelConfig& c) { c.tie_word_embeddings = true; }},
        Variant{"OddValueWidth", [](ModelConfig& c) { c.v_head_dim = 7; }},
        Variant{"RotaryHalvesApart", [](ModelConfig& c) { c.rope_interleave = false; }},
        Variant{"Yarn", [](ModelConfig& c) { make_yarn(c, 16); }}, Variant{"V2Greedy", make_v2},
        Variant{"V2GreedyWithGroupsThatDoNotMatter",
                [](ModelConfig& c) { make_v2(c), c.n_group = 4, c.topk_group = 1; }},
        Variant{"V2GroupLimited",
                [](ModelConfig& c) { make_v2(c), c.topk_method = "group_limited_greedy"; }},
        Variant{"V2Normalised",
                [](ModelConfig& c) {
                  make_v2(c), c.norm_topk_prob = true, c.routed_scaling_factor = 1;
                }}),
    [](const auto& variant) { return variant.param.name; });

// All terms of the objective, over documents packed into rows, with two depths of prediction.
struct Objectives {
  const char* name;
  void (*change)(ModelConfig&, Objective&);
};

class WholeObjective : public ::testing::TestWithParam<Objectives> {};

TEST_P(WholeObjective, AgreesWithAutogradInDouble) {
  ModelConfig config = small_config();
  Pass pass;
  GetParam().change(config, pass.objective);
  Model model(config, at::kDouble, at::kCPU);
  TestParameters parameters(config, at::kDouble);
  const at::Tensor tokens = some_tokens(2, 9, config.vocab_size);
  const at::Tensor targets = targets_with_gaps(2, 9, config.vocab_size);
  const at::Tensor starts = at::tensor(std::vector<int64_t>{0, 0, 0, 3, 3, 3, 3, 3, 8,  //
                                                            0, 1, 1, 1, 1, 5, 5, 7, 7})
                                .view({2, 9});
  pass.rows = document_rows(starts.to(at::kInt));

  Oracle oracle(config, leaves(parameters.values()));
  oracle.set_documents(starts);
  oracle.set_objective(pass.objective);
  const int64_t depths = config.num_nextn_predict_layers;
  const at::Tensor loss = oracle.loss_sum(oracle.logits(tokens), targets);
  const at::Tensor predicted = oracle.prediction_loss_sum(tokens, targets);
  at::Tensor objective = loss.add(oracle.balance_sum()).add(oracle.z_sum());
  if (depths > 0) {
    objective = objective.add(predicted, pass.objective.prediction / static_cast<double>(depths));
  }
  const Named expected = gradients(objective, inputs_of(parameters, oracle));

  const double seed = 0.25;
  double prediction_sum = 0;
  const double loss_sum =
      run_step(model, parameters, tokens, targets, seed, true, pass, &prediction_sum);
  EXPECT_NEAR(loss_sum, loss.item<double>(), 1e-10);
  EXPECT_NEAR(prediction_sum, predicted.item<double>(), 1e-10);
  const RouterTerms terms = model.take_router_terms();
  EXPECT_NEAR(terms.balance, oracle.balance_sum().item<double>(), 1e-10);
  EXPECT_NEAR(terms.z, oracle.z_sum().item<double>(), 1e-10);
  EXPECT_EQ(model.take_router_terms().balance, 0);
  expect_gradients(parameters, expected, seed, kDoubleTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Terms, WholeObjective,
    ::testing::Values(Objectives{"DocumentsAlone", [](ModelConfig&, Objective&) {}},
                      Objectives{"Balance", [](ModelConfig&, Objective& o) { o.balance = 0.3; }},
                      Objectives{"BalanceOfGroups",
                                 [](ModelConfig&, Objective& o) {
                                   o.device_balance = 0.2, o.communication_balance = 0.4;
                                 }},
                      Objectives{"RouterZ", [](ModelConfig&, Objective& o) { o.router_z = 0.1; }},
                      Objectives{"V2",
                                 [](ModelConfig& c, Objective& o) {
                                   make_v2(c);
                                   c.topk_method = "group_limited_greedy";
                                   o = {1, 0.3, 0.2, 0.4, 0.1, 0};
                                 }},
                      Objectives{"OneDepth",
                                 [](ModelConfig& c, Objective& o) {
                                   c.num_nextn_predict_layers = 1, o.prediction = 0.3;
                                 }},
                      Objectives{"TwoDepthsTiedWithAll",
                                 [](ModelConfig& c, Objective& o) {
                                   c.num_nextn_predict_layers = 2, c.tie_word_embeddings = true;
                                   o = {1, 0.3, 0, 0, 0.1, 0.7};
                                 }}),
    [](const auto& variant) { return variant.param.name; });

// A frozen parameter is bound without gradient; nothing else changes, but for the order of sums in
// products that two parameters share otherwise.
TEST(Model, AnyParameterMayBeFrozen) {
  for (const bool is_tied : {false, true}) {
    ModelConfig config = small_config();
    config.num_nextn_predict_layers = 1;
    config.attention_bias = true;
    config.tie_word_embeddings = is_tied;
    Model model(config, at::kDouble, at::kCPU);
    const at::Tensor tokens = some_tokens(2, 9, config.vocab_size);
    Pass pass;
    pass.objective = {1, 0.01, 0, 0, 0.01, 0.3};
    TestParameters all(config, at::kDouble);
    const double loss = run_step(model, all, tokens, tokens, 1, true, pass);
    for (const ParameterSpec& frozen : all.specs()) {
      if (frozen.is_tied()) {
        continue;
      }
      TestParameters parameters(config, at::kDouble);
      parameters.freeze(frozen.name);
      EXPECT_EQ(run_step(model, parameters, tokens, tokens, 1, true, pass), loss);
      for (const ParameterSpec& spec : all.specs()) {
        if (!spec.is_tied() && spec.name != frozen.name) {
          EXPECT_LT(relative_error(parameters.gradient(spec.name), all.gradient(spec.name)),
                    kDoubleTolerance)
              << spec.name << " with " << frozen.name << " frozen";
        }
      }
    }
  }
}

// The factor is on what comes through the look-up: all of the embedding's gradient, or of a tied
// one's the part that is not the head's.
TEST(Model, EmbeddingGradientScaleSparesATiedHead) {
  for (const bool is_tied : {false, true}) {
    ModelConfig config = small_config();
    config.num_nextn_predict_layers = 1;
    config.tie_word_embeddings = is_tied;
    Model model(config, at::kDouble, at::kCPU);
    const at::Tensor tokens = some_tokens(2, 9, config.vocab_size);
    Pass pass;
    pass.objective.prediction = 0.3;
    const auto gradients = [&](double scale) {
      model.set_embedding_gradient_scale(scale);
      TestParameters parameters(config, at::kDouble);
      run_step(model, parameters, tokens, tokens, 1, true, pass);
      return parameters;
    };
    const std::string embedding = "model.embed_tokens.weight";
    const TestParameters whole = gradients(1);
    const TestParameters half = gradients(0.5);
    const TestParameters detached = gradients(0);
    const at::Tensor rest = detached.gradient(embedding);  // of the head
    EXPECT_EQ(rest.abs().sum().item<double>() != 0, is_tied);
    const at::Tensor expected = whole.gradient(embedding).sub(rest).mul(0.5);
    EXPECT_LT(relative_error(half.gradient(embedding).sub(rest), expected), kDoubleTolerance);
    for (const ParameterSpec& spec : whole.specs()) {
      if (!spec.is_tied() && spec.name != embedding) {
        EXPECT_TRUE(same_bits(half.gradient(spec.name), whole.gradient(spec.name))) << spec.name;
        EXPECT_TRUE(same_bits(detached.gradient(spec.name), whole.gradient(spec.name)));
      }
    }
  }
}

// What is computed again has the bits that it had.
TEST(Model, RecomputedGradientsHaveTheSameBits) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    ModelConfig config = small_config();
    config.num_nextn_predict_layers = 1;
    make_yarn(config, 16);
    const at::Tensor tokens = some_tokens(2, 40, config.vocab_size);
    const Objective objective{1, 0.01, 0.01, 0.01, 0.01, 0.3};
    TestParameters kept(config, dtype);
    Model model(config, dtype, at::kCPU);
    const double loss =
        run_step(model, kept, tokens, tokens, 1, true, {{}, {}, objective, Recompute::None});
    const at::Tensor loads = model.expert_loads().clone();
    const RouterTerms terms = model.take_router_terms();
    for (const Recompute recompute : {Recompute::Selective, Recompute::Full}) {
      model.reset_expert_loads();
      TestParameters again(config, dtype);
      EXPECT_EQ(run_step(model, again, tokens, tokens, 1, true, {{}, {}, objective, recompute}),
                loss);
      EXPECT_TRUE(same_bits(model.expert_loads(), loads));  // counted once
      EXPECT_EQ(model.take_router_terms().balance, terms.balance);
      for (const ParameterSpec& spec : kept.specs()) {
        EXPECT_TRUE(same_bits(again.gradient(spec.name), kept.gradient(spec.name))) << spec.name;
      }
    }
  }
}

// Noise follows the sample, not the place of its row, and comes again with recomputation.
TEST(Model, RouterNoiseFollowsTheSample) {
  const ModelConfig config = small_config();
  const at::Tensor tokens = some_tokens(2, 12, config.vocab_size);
  const at::Tensor swapped = tokens.flip({0}).contiguous();
  Model model(config, at::kDouble, at::kCPU);
  const auto run = [&](const at::Tensor& x, std::vector<uint64_t> samples, double deviation,
                       Recompute recompute, uint64_t seed) {
    Pass pass{whole_rows(2, 12), {}, {}, recompute, seed};
    pass.rows.samples = std::move(samples);
    pass.objective.router_noise = deviation;
    TestParameters parameters(config, at::kDouble);
    run_step(model, parameters, x, x, 1, true, pass);
    return parameters.gradient("model.layers.2.mlp.gate.weight").clone();
  };
  const at::Tensor noisy = run(tokens, {7, 9}, 0.5, Recompute::None, 3);
  EXPECT_LT(relative_error(run(swapped, {9, 7}, 0.5, Recompute::None, 3), noisy), kDoubleTolerance);
  EXPECT_TRUE(same_bits(run(tokens, {7, 9}, 0.5, Recompute::Full, 3), noisy));
  EXPECT_GT(relative_error(run(tokens, {7, 9}, 0.5, Recompute::None, 4), noisy), 1e-3);
  EXPECT_GT(relative_error(run(tokens, {9, 7}, 0.5, Recompute::None, 3), noisy), 1e-3);
  EXPECT_GT(relative_error(run(tokens, {7, 9}, 0, Recompute::None, 3), noisy), 1e-3);
}

// A packed row is its documents in rows of their own; what another document says changes nothing.
TEST(Model, PackedRowsAreTheirDocuments) {
  ModelConfig config = small_config();
  config.num_nextn_predict_layers = 2;
  const int64_t length = 15;
  const at::Tensor apart = some_tokens(2, length, config.vocab_size);
  at::Tensor targets = shifted(apart, 1, kIgnoredTarget);
  const at::Tensor packed = apart.view({1, 2 * length});
  const at::Tensor index = at::arange(2 * length, at::kInt);
  const Rows rows = document_rows(index.sub(index.remainder(length)).unsqueeze(0));
  const Objective objective{1, 0, 0, 0, 0, 0.3};
  Model model(config, at::kFloat, at::kCPU);
  TestParameters one(config, at::kFloat);
  TestParameters two(config, at::kFloat);
  double predicted_apart = 0;
  double predicted_packed = 0;
  const double loss_apart =
      run_step(model, one, apart, targets, 1, true, {{}, {}, objective, {}}, &predicted_apart);
  const double loss_packed = run_step(model, two, packed, targets.view({1, 2 * length}), 1, true,
                                      {rows, {}, objective, {}}, &predicted_packed);
  EXPECT_NEAR(loss_packed, loss_apart, 1e-6 * loss_apart);
  EXPECT_NEAR(predicted_packed, predicted_apart, 1e-6 * predicted_apart);
  for (const ParameterSpec& spec : one.specs()) {
    EXPECT_LT(relative_error(two.gradient(spec.name), one.gradient(spec.name)), 1e-5) << spec.name;
  }

  const at::Tensor before = run_logits(model, one, packed, rows);
  const at::Tensor other = packed.clone();
  other.narrow(1, 0, length).add_(1).remainder_(config.vocab_size);
  const at::Tensor after = run_logits(model, one, other, rows);
  EXPECT_FALSE(same_bits(after.narrow(1, 0, length), before.narrow(1, 0, length)));
  EXPECT_TRUE(same_bits(after.narrow(1, length, length), before.narrow(1, length, length)));
}

// Rows of a head's rotary part in the other order: what de-interleaves adjacent pairs.
at::Tensor halves_apart(const at::Tensor& rows, int64_t rope_dim) {
  const at::Tensor rope = rows.narrow(0, rows.size(0) - rope_dim, rope_dim);
  return at::cat({rows.narrow(0, 0, rows.size(0) - rope_dim),
                  rope.unflatten(0, {rope_dim / 2, 2}).transpose(0, 1).flatten(0, 1)});
}

// Field bug B066: the two layouts of rotary pairs are one model under permuted rows, and two models
// under the same.
TEST(Model, FieldB066LayoutsOfRotaryPairsAgreeOncePermuted) {
  ModelConfig config = small_config();
  Model adjacent(config, at::kFloat, at::kCPU);
  TestParameters parameters(config, at::kFloat);
  const at::Tensor tokens = some_tokens(2, 40, config.vocab_size);
  const at::Tensor logits = run_logits(adjacent, parameters, tokens);

  config.rope_interleave = false;
  Model apart(config, at::kFloat, at::kCPU);
  EXPECT_GT(relative_error(run_logits(apart, parameters, tokens), logits), 1e-2);
  for (const auto& [name, value] : parameters.values()) {
    if (name.ends_with("q_b_proj.weight")) {
      for (const at::Tensor& head : value.split(config.qk_head_dim())) {
        head.copy_(halves_apart(head, config.qk_rope_head_dim));
      }
    } else if (name.ends_with("kv_a_proj_with_mqa.weight")) {
      value.copy_(halves_apart(value, config.qk_rope_head_dim));
    }
  }
  EXPECT_LT(relative_error(run_logits(apart, parameters, tokens), logits), 1e-5);
}

// f32 against f64: rounding of some hundred operations in a row. LibTorch's own f32 autograd is as
// far away.
TEST(Model, FloatStaysCloseToDouble) {
  const ModelConfig config = small_config();
  const at::Tensor tokens = some_tokens(2, 40, config.vocab_size);
  const at::Tensor targets = targets_with_gaps(2, 40, config.vocab_size);
  Model exact(config, at::kDouble, at::kCPU);
  TestParameters exact_parameters(config, at::kDouble);
  const double exact_loss = run_step(exact, exact_parameters, tokens, targets, 1, true);
  Model model(config, at::kFloat, at::kCPU);
  TestParameters parameters(config, at::kFloat);
  EXPECT_NEAR(run_step(model, parameters, tokens, targets, 1, true), exact_loss, 1e-6 * exact_loss);
  EXPECT_TRUE(same_bits(model.expert_loads(), exact.expert_loads()));
  for (const ParameterSpec& spec : parameters.specs()) {
    EXPECT_LT(relative_error(parameters.gradient(spec.name), exact_parameters.gradient(spec.name)),
              5e-5)
        << spec.name;
  }
}

struct Narrow {
  at::ScalarType dtype;
  double loss, gradient;  // how far they may be from f32's, relative
};

// bf16 has 8 bits and f16 11; a loss of some hundred tokens averages its errors, a gradient much
// less. Near ties may route a token elsewhere, so gradients are compared as a whole: measured 0.085
// and 0.024, the latter at any loss scale from 16 to 16384. The loss is scaled as fp16 needs it.
TEST(Model, NarrowDtypesStayCloseToFloat) {
  constexpr double kScale = 1024;
  const ModelConfig config = small_config();
  const at::Tensor tokens = some_tokens(2, 100, config.vocab_size);
  const at::Tensor targets = some_tokens(2, 100, config.vocab_size, 2);
  Model wide(config, at::kFloat, at::kCPU);
  TestParameters wide_parameters(config, at::kFloat, 0.2);
  const double wide_loss = run_step(wide, wide_parameters, tokens, targets, kScale / 200, true);
  for (const Narrow& narrow : {Narrow{at::kBFloat16, 5e-3, 0.1}, {at::kHalf, 6e-4, 0.03}}) {
    Model model(config, narrow.dtype, at::kCPU);
    TestParameters parameters(config, narrow.dtype, 0.2);
    EXPECT_NEAR(run_step(model, parameters, tokens, targets, kScale / 200, true), wide_loss,
                narrow.loss * wide_loss);
    double difference = 0;
    double size = 0;
    for (const ParameterSpec& spec : parameters.specs()) {
      const at::Tensor& expected = wide_parameters.gradient(spec.name);
      EXPECT_EQ(parameters.gradient(spec.name).scalar_type(), at::kFloat);
      difference += parameters.gradient(spec.name).sub(expected).square().sum().item<double>();
      size += expected.square().sum().item<double>();
    }
    EXPECT_LT(std::sqrt(difference / size), narrow.gradient) << narrow.dtype;
  }
}

// DeepSpeed PR#7839: a scale that is applied is removed again. A power of two moves exponents alone,
// so that not a bit is left of it.
TEST(Model, ScalingTheLossLeavesNoTrace) {
  constexpr double kScale = 65536;
  const ModelConfig config = small_config();
  const at::Tensor tokens = some_tokens(2, 40, config.vocab_size);
  Model model(config, at::kFloat, at::kCPU);
  TestParameters plain(config, at::kFloat);
  TestParameters scaled(config, at::kFloat);
  EXPECT_EQ(run_step(model, plain, tokens, tokens, 1.0 / 80, true),
            run_step(model, scaled, tokens, tokens, kScale / 80, true));
  for (const ParameterSpec& spec : plain.specs()) {
    EXPECT_TRUE(same_bits(scaled.gradient(spec.name).div(kScale), plain.gradient(spec.name)))
        << spec.name;
  }
}

TEST(Model, SameInputsGiveTheSameBits) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const ModelConfig config = small_config();
    const at::Tensor tokens = some_tokens(2, 40, config.vocab_size);
    TestParameters first(config, dtype);
    TestParameters second(config, dtype);
    Model model(config, dtype, at::kCPU);
    Model other(config, dtype, at::kCPU);
    EXPECT_EQ(run_step(model, first, tokens, tokens, 1, true),
              run_step(other, second, tokens, tokens, 1, true));
    for (const ParameterSpec& spec : first.specs()) {
      EXPECT_TRUE(same_bits(first.gradient(spec.name), second.gradient(spec.name))) << spec.name;
    }
  }
}

TEST(Model, AddingToZerosEqualsOverwriting) {
  const ModelConfig config = small_config();
  const at::Tensor tokens = some_tokens(2, 20, config.vocab_size);
  Model model(config, at::kFloat, at::kCPU);
  TestParameters written(config, at::kFloat);
  TestParameters added(config, at::kFloat);
  run_step(model, written, tokens, tokens, 1, true);
  run_step(model, added, tokens, tokens, 1, false);
  for (const ParameterSpec& spec : written.specs()) {
    EXPECT_LT(relative_error(added.gradient(spec.name), written.gradient(spec.name)), 1e-6)
        << spec.name;
  }
}

TEST(Model, RefusesWhatDoesNotFit) {
  ModelConfig config = small_config();
  Model model(config, at::kFloat, at::kCPU);
  TestParameters parameters(config, at::kFloat);
  const at::Tensor tokens = some_tokens(1, 4, config.vocab_size);
  EXPECT_THROW(model.embed(parameters.bind_values(0), tokens.add(config.vocab_size)), Error);
  EXPECT_THROW(model.embed(parameters.bind_values(1), tokens), c10::Error);
  const at::Tensor hidden = model.embed(parameters.bind_values(0), tokens);
  EXPECT_THROW(model.head_loss(parameters.bind_values(model.head_unit()), hidden,
                               tokens.sub(config.vocab_size)),
               Error);
  const at::Tensor too_long =
      normal("hidden", {1, config.max_position_embeddings + 1, 24}, 1.0, at::kFloat);
  const Pass pass{whole_rows(1, too_long.size(1)), Mode::Evaluate, {}, {}};
  EXPECT_THROW(model.forward(1, parameters.bind_values(1), too_long, pass, nullptr), Error);
  config.hidden_act = "gelu";
  config.topk_group = 9;
  try {
    Model(config, at::kFloat, at::kCPU);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("hidden_act"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("topk_group"), std::string::npos);
  }
}

}  // namespace
}  // namespace ciuic::core::testing
