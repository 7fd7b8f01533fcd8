// SPDX-License-Identifier: MIT
#include "core/model/model_config.h"

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/error.hpp>

#include "core/model/parameter_specs.h"

namespace ciuic::core {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

json preset_file(const std::string& name) {
  std::ifstream file(std::string(CIUIC_SOURCE_DIR) + "/configs/presets/" + name + ".json");
  return json::parse(file);
}

TEST(ModelConfig, PresetsSurviveReadingAndWriting) {
  EXPECT_THAT(preset_names(), ElementsAre("deepseek-v2", "deepseek-v2-lite", "deepseek-v3",
                                          "medium", "small", "tiny"));
  for (const std::string& name : preset_names()) {
    EXPECT_EQ(preset(name).to_json(), preset_file(name)) << name;
    EXPECT_THAT(problems(preset(name)), IsEmpty()) << name;
    EXPECT_THAT(preset(name).unknown_fields, IsEmpty()) << name;
  }
}

TEST(ModelConfig, UnknownPresetIsRefusedWithAllNames) {
  try {
    preset("huge");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("huge"), HasSubstr("medium, small, tiny")));
  }
}

TEST(ModelConfig, ReadsBothSpellingsOfTheRotaryFields) {
  json config = preset_file("tiny");
  config["rope_scaling"] = nullptr;
  config["rope_theta"] = 5000;
  EXPECT_EQ(from_json(config, "old").rope_theta, 5000);
  EXPECT_THAT(problems(from_json(config, "old")), IsEmpty());

  config.erase("rope_theta");
  config.erase("rope_scaling");
  config["rope_parameters"] = {{"rope_theta", 7000.0}, {"rope_type", "default"}};
  EXPECT_EQ(from_json(config, "new").rope_theta, 7000);
  EXPECT_THAT(problems(from_json(config, "new")), IsEmpty());
}

TEST(ModelConfig, IgnoresBookkeepingAndListsTheUnknown) {
  json config = preset_file("tiny");
  config.update({{"transformers_version", "5.0"},
                 {"auto_map", json::object()},
                 {"ep_size", 1},
                 {"pretraining_tp", 1},
                 {"aux_loss_alpha", 0.001},
                 {"seq_aux", true},
                 {"torch_dtype", "bfloat16"},
                 {"hidden_sizes", 3}});
  config.erase("dtype");
  const ModelConfig read = from_json(config, "file");
  EXPECT_THAT(read.unknown_fields, ElementsAre("hidden_sizes"));
  EXPECT_EQ(read.dtype, "bfloat16");
}

TEST(ModelConfig, WrongTypesAreListedTogetherWithTheFile) {
  json config = preset_file("tiny");
  config["hidden_size"] = "128";
  config["rope_theta"] = true;
  config["vocab_size"] = 1.5;
  try {
    from_json(config, "dir/config.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("dir/config.json"),
                      HasSubstr("hidden_size: got \"128\", expected an integer"),
                      HasSubstr("rope_theta: got true"), HasSubstr("vocab_size: got 1.5")));
  }
}

TEST(ModelConfig, FieldsAreSetByName) {
  ModelConfig config = preset("tiny");
  EXPECT_EQ(config.set("hidden_size", 256), std::nullopt);
  EXPECT_EQ(config.hidden_size, 256);
  EXPECT_EQ(config.set("q_lora_rank", nullptr), std::nullopt);
  EXPECT_FALSE(config.q_lora_rank.has_value());
  EXPECT_EQ(config.set("routed_scaling_factor", 1), std::nullopt);
  EXPECT_EQ(config.set("vocab_size", 300.0), std::nullopt);
  EXPECT_THAT(config.set("norm_topk_prob", 1).value(), HasSubstr("expected a boolean"));
  EXPECT_THAT(config.set("hiden_size", 1).value(), HasSubstr("no such field"));
  EXPECT_TRUE(std::ranges::is_sorted(ModelConfig::fields(), {}, &ModelConfig::Field::name));
}

TEST(ModelConfig, KeysOfTheRotaryTableAreChecked) {
  ModelConfig config = preset("tiny");
  EXPECT_THAT(config.set("rope_parameters", {{"rope_type", "yarn"}, {"factr", 4}}).value(),
              AllOf(HasSubstr("rope_parameters.factr is no key; did you mean factor?"),
                    HasSubstr("rope_parameters.factor: missing")));
  EXPECT_THAT(config.set("rope_parameters", {{"rope_type", "default"}, {"factor", 4}}).value(),
              HasSubstr("no effect without rope_type"));
  EXPECT_EQ(config.set("rope_parameters", {{"rope_type", "yarn"}, {"factor", 4}}), std::nullopt);
  EXPECT_EQ(config.set("rope_parameters", nullptr), std::nullopt);
  // A file of somebody else's may say more.
  EXPECT_THAT(
      from_json({{"rope_scaling", {{"type", "yarn"}, {"factor", 4}, {"finetuned", true}}}}, "file")
          .unknown_fields,
      ElementsAre("rope_scaling.finetuned"));
}

struct Refusal {
  const char* field;
  json value;
  const char* expected;  // part of the message
};

class Refused : public ::testing::TestWithParam<Refusal> {};

class RefusedOfV2 : public Refused {};

void expect_refusal(json config, const Refusal& refusal) {
  const std::string field = refusal.field;
  config[field.substr(0, field.find('.'))] = refusal.value;  // a part of a table: the whole table
  EXPECT_THAT(problems(from_json(config, "test")),
              Contains(AllOf(HasSubstr(field + ": got "), HasSubstr(", expected "), HasSubstr("; "),
                             HasSubstr(refusal.expected))));
}

TEST_P(Refused, ByNameWithGotExpectedAndRemedy) {
  expect_refusal(preset_file("small"), GetParam());
}

TEST_P(RefusedOfV2, ByNameWithGotExpectedAndRemedy) {
  json config = preset_file("deepseek-v2");
  config["routed_scaling_factor"] = 2.5;
  expect_refusal(config, GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Unsupported, Refused,
    ::testing::Values(
        Refusal{"model_type", "deepseek_v4", "deepseek_v3"},
        Refusal{"topk_method", "greedy", "noaux_tc"}, Refusal{"scoring_func", "softmax", "sigmoid"},
        Refusal{"attention_dropout", 0.1, "0"},
        Refusal{"rope_parameters.rope_type", {{"type", "llama3"}}, "yarn"},
        Refusal{"rope_parameters.factor", {{"type", "yarn"}, {"factor", 0.5}}, "1 or more"},
        Refusal{"rope_parameters.beta_fast",
                {{"type", "yarn"}, {"factor", 4}, {"beta_fast", 1}},
                "beta_slow"},
        Refusal{"rope_rule", "vllm", "deepseek"}, Refusal{"hidden_act", "gelu", "silu"},
        Refusal{"num_key_value_heads", 2, "num_attention_heads (8)"}));

INSTANTIATE_TEST_SUITE_P(
    OfV2, RefusedOfV2,
    ::testing::Values(Refusal{"topk_method", "noaux_tc", "group_limited_greedy"},
                      Refusal{"scoring_func", "sigmoid", "softmax"},
                      Refusal{"norm_topk_prob", true, "routed_scaling_factor = 1"},
                      Refusal{"rope_interleave", false, "adjacent"},
                      Refusal{"num_nextn_predict_layers", 1, "deepseek_v3"}));

INSTANTIATE_TEST_SUITE_P(Inconsistent, Refused,
                         ::testing::Values(Refusal{"hidden_size", 0, "positive"},
                                           Refusal{"num_hidden_layers", -1, "positive"},
                                           Refusal{"qk_rope_head_dim", 15, "even"},
                                           Refusal{"n_routed_experts", 18,
                                                   "multiple of n_group (4)"},
                                           Refusal{"topk_group", 5, "at most n_group (4)"},
                                           Refusal{"num_experts_per_tok", 9, "at most 8"},
                                           Refusal{"n_group", 16, "2 experts in a group"},
                                           Refusal{"n_shared_experts", -1, "0 or more"},
                                           Refusal{"rms_norm_eps", 0, "positive"}));

TEST(ParameterSpecs, CountsAreThoseOfTheReference) {
  EXPECT_EQ(count_parameters(preset("tiny")), 1066176);
  EXPECT_EQ(count_parameters(preset("small")), 26395008);
  EXPECT_EQ(count_parameters(preset("medium")), 118981760);
}

// The published models, to the last digit; V3's count has the correction biases in it.
TEST(ParameterSpecs, CountsAreThoseOfThePublishedModels) {
  ModelConfig v3 = preset("deepseek-v3");
  const int64_t with_prediction = count_parameters(v3);
  v3.num_nextn_predict_layers = 0;
  EXPECT_EQ(count_parameters(v3) + v3.num_moe_layers() * v3.n_routed_experts, 671026419200);
  EXPECT_NEAR(static_cast<double>(with_prediction - count_parameters(v3)), 11.61e9, 5e6);
  EXPECT_EQ(count_parameters(preset("deepseek-v2-lite")), 15706484224);
  EXPECT_EQ(count_parameters(preset("deepseek-v2")), 235741434880);
}

TEST(ModelConfig, WhatAFileLeavesOutDependsOnItsType) {
  const ModelConfig v2 = from_json({{"model_type", "deepseek_v2"},
                                    {"n_group", nullptr},
                                    {"topk_group", nullptr},
                                    {"num_attention_heads", 16}},
                                   "v2");
  EXPECT_EQ(v2.scoring_func, "softmax");
  EXPECT_EQ(v2.topk_method, "greedy");
  EXPECT_EQ(v2.n_group, 1);
  EXPECT_EQ(v2.num_key_value_heads, 16);
  EXPECT_THAT(buffer_specs(v2), IsEmpty());
  EXPECT_EQ(from_json(json::object(), "v3").scoring_func, "sigmoid");
  EXPECT_THROW(from_json({{"mlp_bias", true}}, "biases"), Error);
}

TEST(ParameterSpecs, OfEveryPath) {
  ModelConfig c = preset("tiny");
  c.q_lora_rank.reset();
  c.attention_bias = true;
  c.tie_word_embeddings = true;
  c.num_nextn_predict_layers = 2;
  std::vector<std::string> names;
  for (const ParameterSpec& spec : parameter_specs(c)) {
    names.push_back(spec.name);
  }
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.o_proj.bias",
        "model.layers.4.enorm.weight", "model.layers.5.eh_proj.weight",
        "model.layers.5.shared_head.norm.weight", "model.layers.5.mlp.gate.weight"}) {
    EXPECT_THAT(names, Contains(name));
  }
  EXPECT_THAT(names, Not(Contains("model.layers.0.self_attn.q_proj.bias")));
  EXPECT_THAT(names, Not(Contains("model.layers.5.embed_tokens.weight")));
  EXPECT_EQ(parameter_specs(c).back().tied_to, 0);
  EXPECT_EQ(buffer_specs(c).back().name, "model.layers.5.mlp.gate.e_score_correction_bias");
  EXPECT_EQ(parameter_specs(c).back().unit, num_units(c) - 1);
}

TEST(ParameterSpecs, AreGroupedByUnitUnderTheirNames) {
  const ModelConfig config = preset("tiny");
  const std::vector<ParameterSpec> specs = parameter_specs(config);
  EXPECT_TRUE(std::ranges::is_sorted(specs, {}, &ParameterSpec::unit));
  EXPECT_EQ(specs.front().name, "model.embed_tokens.weight");
  EXPECT_EQ(specs.back().name, "lm_head.weight");
  EXPECT_EQ(specs.back().unit, num_units(config) - 1);
  const auto expert = std::ranges::find(specs, "model.layers.1.mlp.experts.3.gate_proj.weight",
                                        &ParameterSpec::name);
  ASSERT_NE(expert, specs.end());
  EXPECT_TRUE(expert->is_expert);
  EXPECT_EQ(expert->unit, 2);
  EXPECT_THAT(expert->shape, ElementsAre(64, 128));
  EXPECT_EQ(buffer_specs(config).front().name, "model.layers.1.mlp.gate.e_score_correction_bias");
}

TEST(ParameterSpecs, FlopsAreThoseOfThePeerScript) {
  // train_peer.py: 6 * active + attention; for tiny 3 of 4 layers have 8 experts of 3 * 128 * 64, 2
  // of them active.
  const int64_t active = 1066176 - 3 * 6 * 3 * 128 * 64 - 259 * 128;
  EXPECT_EQ(count_active_parameters(preset("tiny")), active);
  EXPECT_EQ(flops_per_token(preset("tiny"), 256), 6.0 * active + 3.0 * 4 * 256 * 4 * (48 + 32));
}

}  // namespace
}  // namespace ciuic::core
