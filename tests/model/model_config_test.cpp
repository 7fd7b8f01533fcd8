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

json preset_file(const std::string& name) {
  std::ifstream file(std::string(CIUIC_SOURCE_DIR) + "/configs/presets/" + name + ".json");
  return json::parse(file);
}

TEST(ModelConfig, PresetsSurviveReadingAndWriting) {
  EXPECT_THAT(preset_names(), ElementsAre("medium", "small", "tiny"));
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

struct Refusal {
  const char* field;
  json value;
  const char* expected;  // part of the message
};

class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, ByNameWithGotExpectedAndRemedy) {
  json config = preset_file("small");
  config[GetParam().field] = GetParam().value;
  EXPECT_THAT(
      problems(from_json(config, "test")),
      Contains(AllOf(HasSubstr(std::string(GetParam().field) + ": got "), HasSubstr(", expected "),
                     HasSubstr("; "), HasSubstr(GetParam().expected))));
}

INSTANTIATE_TEST_SUITE_P(
    Unsupported, Refused,
    ::testing::Values(Refusal{"model_type", "deepseek_v2", "deepseek_v3"},
                      Refusal{"q_lora_rank", nullptr, "q_proj"},
                      Refusal{"topk_method", "greedy", "noaux_tc"},
                      Refusal{"scoring_func", "softmax", "sigmoid"},
                      Refusal{"tie_word_embeddings", true, "false"},
                      Refusal{"attention_bias", true, "false"},
                      Refusal{"attention_dropout", 0.1, "0"},
                      Refusal{"rope_scaling", {{"type", "yarn"}}, "default"},
                      Refusal{"rope_interleave", false, "true"}, Refusal{"moe_layer_freq", 2, "1"},
                      Refusal{"num_nextn_predict_layers", 1, "multi-token"},
                      Refusal{"hidden_act", "gelu", "silu"},
                      Refusal{"quantization_config", {{"quant_method", "fp8"}}, "bf16"},
                      Refusal{"num_key_value_heads", 2, "num_attention_heads (8)"}));

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

  ModelConfig v3;  // the defaults are DeepSeek-V3's
  EXPECT_EQ(count_parameters(v3) + v3.num_moe_layers() * v3.n_routed_experts, 671026419200);
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
