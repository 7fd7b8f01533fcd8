// SPDX-License-Identifier: MIT
#include "core/config/config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/schema.h"
#include "tests/config/minimal_config.h"

namespace ciuic::core {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Every key's value, so that two configurations can be compared.
std::string all_values(const RunConfig& config) {
  std::string text;
  for (const Key& key : keys()) {
    const bool is_missing = (key.flags & kOptional) != 0 && !is_set(key, config);
    text += key.path() + " = " + (is_missing ? "-" : value_text(key, config)) + "\n";
  }
  return text;
}

TEST(ConfigText, ReferenceLoadsToTheDefaults) {
  const Loaded loaded = parse(reference_toml());
  ASSERT_TRUE(loaded.ok()) << problems_of(loaded);
  RunConfig defaults;
  defaults.run.steps = 200;
  defaults.run.output = "runs/run";
  defaults.model.preset = "tiny";
  defaults.data.train = {"data/*.txt"};
  EXPECT_EQ(all_values(loaded.config), all_values(defaults));
}

TEST(ConfigText, ReferenceShowsEveryKeyAndField) {
  const std::vector<ModelField> fields{{"hidden_size", "integer", "Width."}};
  for (const std::string& text : {reference_toml(fields), reference_markdown(fields)}) {
    for (const Key& key : keys()) {
      EXPECT_THAT(text, HasSubstr(std::string(key.name)));
    }
    EXPECT_THAT(text, HasSubstr("hidden_size"));
  }
  EXPECT_THAT(reference_markdown(),
              HasSubstr("| `order` | choice | `\"shuffled\"` | shuffled \\| sequential |"));
}

TEST(ConfigText, EveryKeyHasTextAndEveryBoundHoldsItsDefault) {
  for (const Key& key : keys()) {
    EXPECT_FALSE(key.doc.empty()) << key.path();
    EXPECT_NE(find_section(key.table), nullptr) << key.path();
    EXPECT_EQ((key.flags & kOptional) != 0, !key.example.empty()) << key.path();
  }
}

TEST(ConfigText, ResolvedFileLoadsToAnEqualConfiguration) {
  const std::string text =
      "[run]\nname = \"x \\\"y\\\" \\\\\"\ntokens = \"2B\"\nranks = 3\n"
      "[model]\npreset = \"tiny\"\nhidden_size = 64\nrope_theta = 1e6\n"
      "[data]\ntrain = [\"b.txt\", \"a*.txt\"]\nvalidation = [\"v.txt\"]\n"
      "[validation]\nevery = \"90s\"\n"
      "[communicator]\ntimeout = \"1500ms\"\n"
      "[optimizer]\ngradient_clip_norm = 0.1\n"
      "[optimizer.adamw]\nbeta1 = 0.9\nno_decay = [\"*norm*\"]\n"
      "[sharding.other]\na = 1\n"
      "[schedule]\nlearning_rate = [{until = \"2K steps\", to = 2.2e-4, shape = \"linear\"}, "
      "{until = \"14.3T tokens\", to = 2.2e-5, shape = \"cosine\"}, {until = \"end\", to = 7.3e-6, "
      "shape = \"step\"}]\n"
      "expert_bias_rate = 0\n"
      "[profiler]\nplugins = [\"monitor\"]\n[profiler.monitor]\nevery = 3\n";
  const Loaded first = parse(text);
  ASSERT_TRUE(first.ok()) << problems_of(first);
  const std::string resolved = resolved_toml(first.config);
  const Loaded second = parse(resolved);
  ASSERT_TRUE(second.ok()) << problems_of(second) << "\n" << resolved;
  EXPECT_EQ(all_values(first.config), all_values(second.config));
  EXPECT_EQ(resolved, resolved_toml(second.config));
  EXPECT_EQ(config_hash(first.config), config_hash(second.config));
  EXPECT_THAT(resolved, HasSubstr("[optimizer.adamw]\nbeta1 = 0.9\nno_decay = [\"*norm*\"]\n"));
  EXPECT_THAT(resolved, HasSubstr("[profiler.monitor]\nevery = 3\n"));
  EXPECT_THAT(resolved, HasSubstr("hidden_size = 64\n"));
  EXPECT_THAT(resolved, Not(HasSubstr("sharding.other")));
  EXPECT_THAT(resolved, Not(HasSubstr("validation_fraction")));
}

TEST(ConfigText, ResolvedFileOfARunWithoutValidationLoads) {
  const Loaded first = parse(kMinimal + "validation_fraction = 0\n");
  const Loaded second = parse(resolved_toml(first.config));
  EXPECT_TRUE(second.ok()) << problems_of(second);
  EXPECT_FALSE(second.config.validates());
}

TEST(ConfigText, ResolvedFileKeepsScheduledClipNormAndShapes) {
  const Loaded first =
      parse(kMinimal +
            "[schedule]\ngradient_clip_norm = [{ until = \"5 steps\", to = 2, "
            "shape = \"step\" }, { until = \"9 steps\", shape = \"inverse_sqrt\" }, "
            "{ until = \"end\", to = 1, shape = \"exponential\" }]\n");
  ASSERT_TRUE(first.ok()) << problems_of(first);
  const std::string text = resolved_toml(first.config);
  EXPECT_THAT(text, HasSubstr("{ until = \"9 steps\", shape = \"inverse_sqrt\" }"));
  EXPECT_THAT(text, Not(HasSubstr("gradient_clip_norm = 1.0")));
  const Loaded second = parse(text);
  EXPECT_TRUE(second.ok()) << problems_of(second);
  EXPECT_EQ(second.config.clip_norm(), first.config.clip_norm());
}

TEST(ConfigText, ResolvedFileTakesWhatTheCallerResolved) {
  const RunConfig config = parse(kMinimal + "[optimizer.adamw]\nbeta1 = 0.8\n").config;
  ResolvedParts parts;
  parts.plugin_tables["optimizer.adamw"] = {{"beta1", "0.8"}, {"beta2", "0.95"}};
  parts.model_fields = {{"hidden_size", "64"}};
  const std::string text = resolved_toml(config, parts);
  EXPECT_THAT(text, HasSubstr("[optimizer.adamw]\nbeta1 = 0.8\nbeta2 = 0.95\n"));
  EXPECT_THAT(text, HasSubstr("preset = \"tiny\"\nhidden_size = 64\n"));
}

TEST(ConfigText, ShowTellsWhereEachValueComesFrom) {
  const RunConfig config =
      parse(kMinimal + "[optimizer.adamw]\nbeta1 = 0.8\n", {"run.ranks=2"}).config;
  const std::string text = show_toml(config);
  EXPECT_THAT(text, HasSubstr("steps = 200  # x.toml:2\n"));
  EXPECT_THAT(text, HasSubstr("ranks = 2  # --set run.ranks\n"));
  EXPECT_THAT(text, HasSubstr("seed = 1234  # default\n"));
  EXPECT_THAT(text, HasSubstr("beta1 = 0.8  # x.toml:8\n"));
  EXPECT_TRUE(parse(text).ok());
  ResolvedParts parts;
  parts.model_fields = {{"hidden_size", "64"}};
  EXPECT_THAT(show_toml(config, parts), HasSubstr("hidden_size = 64  # preset tiny\n"));
}

TEST(ConfigText, HashIgnoresPlacesAndNothingElse) {
  const auto hash = [](const std::vector<std::string>& overrides) {
    return config_hash(parse(kMinimal, overrides).config);
  };
  const std::string base = hash({});
  EXPECT_EQ(base.size(), 16u);
  EXPECT_EQ(base, hash({"run.name=other"}));
  EXPECT_EQ(base, hash({"run.output=/tmp/x"}));
  EXPECT_EQ(base, hash({"run.rendezvous=env://"}));
  EXPECT_EQ(base, hash({"plugins.path=[\"p\"]"}));
  EXPECT_EQ(base, hash({"run.seed=1234"}));
  EXPECT_NE(base, hash({"run.seed=1235"}));
  EXPECT_NE(base, hash({"model.hidden_size=64"}));
  EXPECT_NE(base, hash({"optimizer.adamw.beta1=0.8"}));
}

TEST(ConfigText, NumericSettingsAreThoseThatMoveALossBit) {
  const TomlEntries settings = numeric_settings(parse(kMinimal).config);
  const auto has = [&](const std::string& key) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const auto& s) { return s.first == key; });
  };
  EXPECT_TRUE(has("run.seed"));
  EXPECT_TRUE(has("schedule.learning_rate"));
  EXPECT_FALSE(has("run.name"));
  EXPECT_FALSE(has("run.tokens"));
  EXPECT_FALSE(has("checkpoint.keep"));
}

}  // namespace
}  // namespace ciuic::core
