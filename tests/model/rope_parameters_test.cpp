// SPDX-License-Identifier: MIT
// YaRN against the published figures of DeepSeek's models.
#include "core/model/rope_parameters.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/model_config.h"

namespace ciuic::core {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelConfig deepseek(double mscale) {
  ModelConfig c;
  c.max_position_embeddings = 163840;
  const auto problem = c.set("rope_parameters", {{"rope_type", "yarn"},
                                                 {"factor", 40},
                                                 {"original_max_position_embeddings", 4096},
                                                 {"beta_fast", 32},
                                                 {"beta_slow", 1},
                                                 {"mscale", mscale},
                                                 {"mscale_all_dim", mscale}});
  EXPECT_EQ(problem, std::nullopt);
  return c;
}

TEST(RopeParameters, FrequenciesOfDeepseek) {
  const ModelConfig c = deepseek(1.0);
  const std::vector<float> f =
      inverse_frequencies(c.rope_parameters, 64, c.rope_theta, c.max_position_embeddings);
  ASSERT_EQ(f.size(), 32);
  const std::pair<size_t, double> expected[] = {
      {0, 1.0},          {10, 5.623413e-2}, {11, 3.900693e-2}, {16, 5.5e-3},
      {22, 1.778279e-4}, {23, 3.333804e-5}, {31, 3.333804e-6}};
  for (const auto& [pair, frequency] : expected) {
    EXPECT_NEAR(f[pair] / frequency, 1, 1e-6) << pair;  // seven published digits
  }
}

TEST(RopeParameters, SoftmaxScalesOfDeepseek) {
  EXPECT_NEAR(deepseek(1.0).softmax_scale(), 0.1352338, 5e-8);
  EXPECT_NEAR(deepseek(0.707).softmax_scale(), 0.1147214, 5e-8);
  EXPECT_NEAR(ModelConfig().softmax_scale(), 0.0721688, 5e-8);
  EXPECT_EQ(rotary_factor(deepseek(0.707).rope_parameters), 1.0);
  EXPECT_NEAR(yarn_mscale(40, 1.0), 1.3688879, 5e-8);
  EXPECT_EQ(yarn_mscale(1, 0.7), 1.0);
}

TEST(RopeParameters, AttentionFactorWithoutMscales) {
  RopeParameters rope;
  rope.rope_type = "yarn";
  rope.factor = 4;
  EXPECT_NEAR(rotary_factor(rope), 0.1 * std::log(4.0) + 1, 1e-12);
  EXPECT_EQ(softmax_factor(rope), 1.0);
  rope.attention_factor = 0.5;
  EXPECT_EQ(rotary_factor(rope), 0.5);
}

// DeepSeek's own inference code stretches only models for more than the original length.
TEST(RopeParameters, DeepseeksRule) {
  ModelConfig c = deepseek(1.0);
  c.rope_rule = "deepseek";
  EXPECT_TRUE(c.applied_rope().is_yarn());
  c.max_position_embeddings = 4096;
  EXPECT_FALSE(c.applied_rope().is_yarn());
  EXPECT_NEAR(c.softmax_scale(), 0.0721688, 5e-8);
  c.rope_rule = "transformers";
  EXPECT_TRUE(c.applied_rope().is_yarn());
}

TEST(RopeParameters, BothSpellingsAndBack) {
  const json table = {{"factor", 40},
                      {"original_max_position_embeddings", 4096},
                      {"mscale", 0.707},
                      {"mscale_all_dim", 0.707}};
  json old_spelling = table;
  old_spelling["type"] = "yarn";
  json new_spelling = table;
  new_spelling.update({{"rope_type", "yarn"}, {"rope_theta", 5000}});
  const ModelConfig old_one =
      from_json({{"rope_scaling", old_spelling}, {"rope_theta", 5000}}, "old");
  const ModelConfig new_one = from_json({{"rope_parameters", new_spelling}}, "new");
  EXPECT_EQ(old_one.rope_parameters, new_one.rope_parameters);
  EXPECT_EQ(new_one.rope_theta, 5000);
  const json written = new_one.to_json();
  EXPECT_EQ(written["rope_parameters"]["rope_type"], "yarn");
  EXPECT_EQ(written["rope_scaling"]["type"], "yarn");
  const ModelConfig read = from_json(written, "written");
  EXPECT_EQ(read.rope_parameters, new_one.rope_parameters);
  EXPECT_EQ(read.rope_theta, 5000);
  EXPECT_THAT(read.unknown_fields, IsEmpty());
}

TEST(RopeParameters, WrongTypesAndUnknownKeysAreNamed) {
  RopeParameters rope;
  double theta = 0;
  std::vector<std::string> unknown;
  const std::vector<std::string> wrong =
      read_rope({{"rope_type", 3}, {"factor", "40"}, {"low_freq_factor", 1}}, "rope_parameters",
                rope, theta, unknown);
  EXPECT_THAT(wrong, ElementsAre(HasSubstr("rope_parameters.rope_type: got 3, expected a string"),
                                 HasSubstr("rope_parameters.factor: got \"40\"")));
  EXPECT_THAT(unknown, ElementsAre("rope_parameters.low_freq_factor"));
}

}  // namespace
}  // namespace ciuic::core
