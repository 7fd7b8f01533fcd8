// SPDX-License-Identifier: MIT
#include "core/train/hf_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelConfig model(int64_t mtp, bool is_tied = false) {
  ModelConfig config = preset("tiny");
  config.num_hidden_layers = 61;
  config.num_nextn_predict_layers = mtp;
  config.tie_word_embeddings = is_tied;
  return config;
}

std::vector<std::string> as_text(const std::vector<HfCopy>& copies) {
  std::vector<std::string> all;
  for (const HfCopy& copy : copies) {
    all.push_back(copy.name + " = " + copy.parameter + (copy.is_exported ? "" : " (not exported)"));
  }
  return all;
}

std::vector<ArchiveEntry> entries(const std::vector<std::string>& keys) {
  std::vector<ArchiveEntry> all;
  for (const std::string& key : keys) {
    all.push_back({key, false, {}, {1}, 4});
  }
  return all;
}

TEST(HfNames, APlainModelHasNoCopies) { EXPECT_THAT(hf_copies(model(0)), IsEmpty()); }

TEST(HfNames, EachMtpLayerRepeatsEmbeddingAndHead) {
  EXPECT_THAT(as_text(hf_copies(model(2))),
              ElementsAre("model.layers.61.embed_tokens.weight = model.embed_tokens.weight",
                          "model.layers.61.shared_head.head.weight = lm_head.weight",
                          "model.layers.62.embed_tokens.weight = model.embed_tokens.weight",
                          "model.layers.62.shared_head.head.weight = lm_head.weight"));
  const ModelConfig config = model(1);
  EXPECT_EQ(hf_copies(config).front().shape,
            (std::vector<int64_t>{config.vocab_size, config.hidden_size}));
}

TEST(HfNames, ATiedHeadIsTheEmbedding) {
  EXPECT_THAT(as_text(hf_copies(model(1, true))),
              ElementsAre("lm_head.weight = model.embed_tokens.weight (not exported)",
                          "model.layers.61.embed_tokens.weight = model.embed_tokens.weight",
                          "model.layers.61.shared_head.head.weight = model.embed_tokens.weight"));
}

TEST(HfNames, RotaryBuffersFollowFromTheConfiguration) {
  EXPECT_TRUE(is_derived_in_hf("model.layers.3.self_attn.rotary_emb.inv_freq"));
  EXPECT_TRUE(is_derived_in_hf("model.rotary_emb.inv_freq"));
  EXPECT_FALSE(is_derived_in_hf("model.rotary_emb.inv_freq.weight"));
  EXPECT_FALSE(is_derived_in_hf("model.embed_tokens.weight"));
}

TEST(HfNames, KeysOfValuesAndMasters) {
  EXPECT_EQ(value_name("value/a/b"), "a/b");
  EXPECT_EQ(value_name("master/a"), "a");
  EXPECT_EQ(value_name("moment/exp_avg/a"), std::nullopt);
  EXPECT_EQ(value_name("values/a"), std::nullopt);
}

TEST(HfNames, AModelMayDoWithoutTheFoldersMtpLayers) {
  EXPECT_TRUE(is_unused_mtp("model.layers.61.enorm.weight", model(1), model(0)));
  EXPECT_TRUE(is_unused_mtp("model.layers.62.enorm.weight", model(2), model(1)));
  EXPECT_FALSE(is_unused_mtp("model.layers.61.enorm.weight", model(2), model(1)));
  EXPECT_FALSE(is_unused_mtp("model.layers.61.enorm.weight", model(1), model(1)));
  EXPECT_FALSE(is_unused_mtp("model.layers.61.enorm.weight", model(0), model(0)));
  EXPECT_FALSE(is_unused_mtp("model.layers.6.enorm.weight", model(1), model(0)));
  EXPECT_FALSE(is_unused_mtp("model.layers.610.enorm.weight", model(1), model(0)));
  ModelConfig shorter = model(0);
  shorter.num_hidden_layers = 60;
  EXPECT_FALSE(is_unused_mtp("model.layers.61.enorm.weight", model(1), shorter));
}

TEST(HfNames, MtpLayersThatAreNotThereAreDropped) {
  ModelConfig config = model(1);
  const auto note = drop_absent_mtp(
      config,
      entries({"config.json", "value/model.layers.60.mlp.gate.weight", "value/lm_head.weight"}));
  ASSERT_TRUE(note);
  EXPECT_THAT(*note, HasSubstr("num_nextn_predict_layers = 1"));
  EXPECT_EQ(config.num_nextn_predict_layers, 0);
}

TEST(HfNames, MtpLayersThatAreThereStayEvenInPart) {
  for (const char* key :
       {"value/model.layers.61.enorm.weight", "master/model.layers.61.mlp.gate.weight",
        "value/model.layers.61.embed_tokens.weight"}) {
    ModelConfig config = model(1);
    EXPECT_EQ(drop_absent_mtp(config, entries({"value/lm_head.weight", key})), std::nullopt);
    EXPECT_EQ(config.num_nextn_predict_layers, 1);
  }
  ModelConfig without = model(0);
  EXPECT_EQ(drop_absent_mtp(without, entries({"value/lm_head.weight"})), std::nullopt);
}

}  // namespace
}  // namespace ciuic::core
