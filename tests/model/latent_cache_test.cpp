// SPDX-License-Identifier: MIT
// Tokens after a cache give what all tokens at once give.
#include "core/model/latent_cache.h"

#include <algorithm>
#include <functional>
#include <string>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/error.hpp>

#include "core/model/cached_attention.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

using ::testing::HasSubstr;

// The absorbed products sum in another order; logits are a few units large.
constexpr double kFloatTolerance = 1e-5;
constexpr double kDoubleTolerance = 1e-11;

// Logits [1, N, V] of tokens [1, N] that follow those in the cache.
at::Tensor extended(Model& model, const TestParameters& parameters, const at::Tensor& tokens_BT,
                    LatentCache& cache) {
  cache.begin(tokens_BT.size(1));
  at::Tensor hidden = model.embed(parameters.bind_values(0), tokens_BT);
  for (int64_t unit = 1; unit <= model.last_layer_unit(); ++unit) {
    hidden = model.extend(unit, parameters.bind_values(unit), hidden, cache);
  }
  cache.commit();
  return model.head_logits(parameters.bind_values(model.head_unit()), hidden);
}

// Largest difference over the largest logit, which is at least 1.
double logit_error(const at::Tensor& a, const at::Tensor& b) {
  const double largest = b.abs().max().to(at::kDouble).item<double>();
  return a.sub(b).abs().max().to(at::kDouble).item<double>() / std::max(1.0, largest);
}

struct Variant {
  const char* name;
  std::function<void(ModelConfig&)> change;
};

class CachedModel : public ::testing::TestWithParam<Variant> {
 protected:
  // Thousands of tiny products, for which threads only wait for each other.
  CachedModel() { at::set_num_threads(1); }
  ~CachedModel() override { at::set_num_threads(threads_); }

  void expect_equal_for_every_split(at::ScalarType dtype, double tolerance) {
    const c10::InferenceMode no_autograd;
    constexpr int64_t kTokens = 17;
    ModelConfig config = small_config();
    GetParam().change(config);
    const TestParameters parameters(config, dtype, 0.3);
    Model model(config, dtype, at::kCPU);
    const at::Tensor tokens = some_tokens(1, kTokens, config.vocab_size, 5);
    const at::Tensor expected = run_logits(model, parameters, tokens);
    // The prompt up to `split` in one go, then `stride` at a time: 1 is generation.
    for (const int64_t stride : {int64_t{1}, int64_t{3}, kTokens}) {
      for (int64_t split = 0; split < kTokens; ++split) {
        LatentCache cache = model.new_cache();
        if (split > 0) {
          const at::Tensor first = extended(model, parameters, tokens.narrow(1, 0, split), cache);
          EXPECT_LT(logit_error(first, expected.narrow(1, 0, split)), tolerance) << split;
        }
        for (int64_t at = split; at < kTokens; at += stride) {
          const int64_t count = std::min(stride, kTokens - at);
          const at::Tensor next = extended(model, parameters, tokens.narrow(1, at, count), cache);
          ASSERT_LT(logit_error(next, expected.narrow(1, at, count)), tolerance)
              << "split " << split << ", stride " << stride << ", at " << at;
        }
        ASSERT_EQ(cache.length(), kTokens);
      }
    }
  }

 private:
  int threads_ = at::get_num_threads();
};

TEST_P(CachedModel, EqualsTheUncachedOneInDouble) {
  expect_equal_for_every_split(at::kDouble, kDoubleTolerance);
}

TEST_P(CachedModel, EqualsTheUncachedOneInFloat) {
  expect_equal_for_every_split(at::kFloat, kFloatTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Configurations, CachedModel,
    ::testing::Values(
        Variant{"Default", [](ModelConfig&) {}},
        Variant{"NoQueryLatent", [](ModelConfig& c) { c.q_lora_rank.reset(); }},
        Variant{"Biases", [](ModelConfig& c) { c.attention_bias = true; }},
        Variant{"BiasesNoQueryLatent",
                [](ModelConfig& c) { c.attention_bias = true, c.q_lora_rank.reset(); }},
        Variant{"RotaryHalvesApart", [](ModelConfig& c) { c.rope_interleave = false; }},
        Variant{"Yarn", [](ModelConfig& c) { make_yarn(c, 8); }},
        Variant{"YarnByDeepSeeksRule",
                [](ModelConfig& c) { make_yarn(c, 8), c.rope_rule = "deepseek"; }},
        Variant{"TiedEmbeddings", [](ModelConfig& c) { c.tie_word_embeddings = true; }},
        Variant{"OnlyDenseLayers", [](ModelConfig& c) { c.first_k_dense_replace = 3; }},
        Variant{"NoSharedExperts", [](ModelConfig& c) { c.n_shared_experts = 0; }},
        Variant{"ValuesWiderThanQueries", [](ModelConfig& c) { c.v_head_dim = 16; }},
        Variant{"LatentWiderThanHeads", [](ModelConfig& c) { c.kv_lora_rank = 40; }},
        Variant{"PredictionLayers", [](ModelConfig& c) { c.num_nextn_predict_layers = 1; }},
        Variant{"GreedyV2", [](ModelConfig& c) { make_v2(c), c.n_group = 4, c.topk_group = 1; }},
        Variant{"GroupLimitedV2Yarn",
                [](ModelConfig& c) {
                  make_v2(c), make_yarn(c, 8), c.topk_method = "group_limited_greedy";
                }}),
    [](const auto& variant) { return std::string(variant.param.name); });

TEST(CachedAttention, TakesEachOfItsPaths) {
  ModelConfig v3;  // DeepSeek-V3's sizes
  const CachedAttention attention(v3);
  EXPECT_EQ(attention.best_path(0, 300), CachedPath::Whole);
  EXPECT_EQ(attention.best_path(512, 512), CachedPath::Expanded);
  EXPECT_EQ(attention.best_path(512, 1), CachedPath::Absorbed);
  EXPECT_EQ(attention.best_path(100000, 1), CachedPath::Absorbed);
  // The small configuration of this file takes both within 17 tokens.
  const CachedAttention small(small_config());
  EXPECT_EQ(small.best_path(2, 15), CachedPath::Expanded);
  EXPECT_EQ(small.best_path(14, 3), CachedPath::Absorbed);
}

TEST(LatentCache, LongContextsGoThroughBlocksOfQueries) {
  const c10::InferenceMode no_autograd;
  ModelConfig config = small_config();
  config.num_hidden_layers = 2;
  config.num_attention_heads = config.num_key_value_heads = 16;
  config.max_position_embeddings = 2048;
  make_yarn(config, 8);
  const TestParameters parameters(config, at::kDouble, 0.3);
  Model model(config, at::kDouble, at::kCPU);
  const at::Tensor tokens = some_tokens(1, 1400, config.vocab_size, 5);
  const at::Tensor expected = run_logits(model, parameters, tokens);
  LatentCache cache = model.new_cache();
  int64_t at = 0;
  for (const int64_t count :
       {500, 700, 1, 199}) {  // 16 heads x 700 x 1200 scores are several blocks
    const at::Tensor got = extended(model, parameters, tokens.narrow(1, at, count), cache);
    EXPECT_LT(logit_error(got, expected.narrow(1, at, count)), kDoubleTolerance) << at;
    at += count;
  }
}

TEST(LatentCache, Bfloat16StaysClose) {
  const c10::InferenceMode no_autograd;
  const ModelConfig config = small_config();
  const TestParameters parameters(config, at::kBFloat16, 0.1);
  Model model(config, at::kBFloat16, at::kCPU);
  const at::Tensor tokens = some_tokens(1, 12, config.vocab_size, 5);
  const at::Tensor expected = run_logits(model, parameters, tokens);
  LatentCache cache = model.new_cache();
  extended(model, parameters, tokens.narrow(1, 0, 7), cache);
  for (int64_t at = 7; at < 12; ++at) {
    const at::Tensor got = extended(model, parameters, tokens.narrow(1, at, 1), cache);
    // Eight bits of mantissa, through three layers; an expert may be another one.
    EXPECT_LT(relative_error(got, expected.narrow(1, at, 1)), 0.1) << at;
  }
}

TEST(LatentCache, HoldsLatentAndRotaryKeyOnly) {
  const ModelConfig config = small_config();
  LatentCache cache(config, at::kFloat, at::kCPU);
  EXPECT_EQ(cache.token_bytes(), 3 * (12 + 4) * 4);
  EXPECT_EQ(cache.bytes(), 0);
  cache.begin(100);
  cache.commit();
  EXPECT_EQ(cache.length(), 100);
  EXPECT_EQ(cache.bytes(), 100 * cache.token_bytes());
  EXPECT_EQ(cache.layer(0).size(0), 100);
}

TEST(LatentCache, EndsAtTheModelsPositions) {
  ModelConfig config = small_config();
  config.max_position_embeddings = 10;
  LatentCache cache(config, at::kFloat, at::kCPU);
  cache.begin(10);
  cache.commit();
  try {
    cache.begin(1);
    FAIL() << "11 of 10 positions";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("11 tokens, expected at most 10 (max_position_embeddings)"));
  }
  EXPECT_EQ(cache.length(), 10);
}

TEST(LatentCache, WhatIsNotCommittedIsNotThere) {
  const c10::InferenceMode no_autograd;
  const ModelConfig config = small_config();
  const TestParameters parameters(config, at::kFloat, 0.3);
  Model model(config, at::kFloat, at::kCPU);
  const at::Tensor tokens = some_tokens(1, 9, config.vocab_size, 5);
  LatentCache cache = model.new_cache();
  extended(model, parameters, tokens.narrow(1, 0, 4), cache);
  cache.begin(3);  // and then something goes wrong
  EXPECT_EQ(cache.length(), 4);
  const at::Tensor got = extended(model, parameters, tokens.narrow(1, 4, 5), cache);
  EXPECT_LT(logit_error(got, run_logits(model, parameters, tokens).narrow(1, 4, 5)),
            kFloatTolerance);
  cache.clear();
  EXPECT_EQ(cache.length(), 0);
  EXPECT_TRUE(
      same_bits(extended(model, parameters, tokens, cache), run_logits(model, parameters, tokens)));
}

}  // namespace
}  // namespace ciuic::core::testing
