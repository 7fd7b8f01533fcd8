// SPDX-License-Identifier: MIT
#include "core/config/run_config.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/config/model_value.h"
#include "tests/config/minimal_config.h"

namespace ciuic::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RunConfig, MinimalFileTakesDefaults) {
  const Loaded loaded = parse(kMinimal);
  ASSERT_TRUE(loaded.ok()) << problems_of(loaded);
  const RunConfig& c = loaded.config;
  EXPECT_EQ(c.run.steps, 200);
  EXPECT_EQ(c.run.tokens, std::nullopt);
  EXPECT_EQ(c.run.seed, 1234);
  EXPECT_EQ(c.run.output, "runs/run");
  EXPECT_EQ(c.model.preset, "tiny");
  EXPECT_THAT(c.data.train, ElementsAre("a.txt"));
  EXPECT_DOUBLE_EQ(c.data.validation_fraction, 0.02);
  EXPECT_EQ(c.validation.every, (Interval{Interval::Unit::Steps, 50}));
  EXPECT_EQ(c.communicator.timeout, std::chrono::seconds(30));
  EXPECT_EQ(c.schedule.learning_rate.size(), 2u);
  EXPECT_FALSE(c.checkpoint.asynchronous);
}

TEST(RunConfig, FactorsKeepTheOrderOfTheFile) {
  const Loaded loaded = parse(kMinimal +
                              "[optimizer]\n"
                              "frozen = [\"*embed*\"]\n"
                              "weight_decay_scale = { \"*norm*\" = 0.0, \"a*\" = 2, z = 0.5 }\n"
                              "embedding_gradient_scale = 0.1\n"
                              "[optimizer.learning_rate_scale]\n"
                              "z = 1\n"
                              "\"a.*\" = 0.5\n");
  ASSERT_TRUE(loaded.ok()) << problems_of(loaded);
  const OptimizerSection& o = loaded.config.optimizer;
  const auto text = [](const std::vector<NameFactor>& factors) {
    std::string out;
    for (const NameFactor& f : factors) {
      out += f.pattern + "=" + std::to_string(f.factor).substr(0, 3) + " ";
    }
    return out;
  };
  EXPECT_EQ(text(o.weight_decay_scale), "*norm*=0.0 a*=2.0 z=0.5 ");
  EXPECT_EQ(text(o.learning_rate_scale), "z=1.0 a.*=0.5 ");
  EXPECT_THAT(o.frozen, ElementsAre("*embed*"));
  EXPECT_EQ(o.embedding_gradient_scale, 0.1);
}

TEST(RunConfig, FactorsOfAnOverrideKeepItsOrder) {
  const Loaded loaded = parse(kMinimal, {"optimizer.weight_decay_scale={ z = 1.0, a = 0.0 }"});
  ASSERT_TRUE(loaded.ok()) << problems_of(loaded);
  ASSERT_EQ(loaded.config.optimizer.weight_decay_scale.size(), 2u);
  EXPECT_EQ(loaded.config.optimizer.weight_decay_scale[0].pattern, "z");
}

TEST(RunConfig, FactorsThatAreNone) {
  const Loaded loaded = parse(kMinimal +
                              "[optimizer]\n"
                              "weight_decay_scale = 3\n"
                              "learning_rate_scale = { \"*a\" = -1, b = \"x\" }\n"
                              "embedding_gradient_scale = 1.5\n");
  EXPECT_EQ(
      problems_of(loaded),
      "x.toml:8: optimizer.weight_decay_scale: got 3, expected a table of patterns and "
      "factors, such as { \"*norm*\" = 0.5 }, each, 0 to 1000000\n"
      "x.toml:9: optimizer.learning_rate_scale.\"*a\": got -1, expected a finite number, 0 to "
      "1000000\n"
      "x.toml:9: optimizer.learning_rate_scale.b: got \"x\", expected a finite number, 0 to "
      "1000000\n"
      "x.toml:10: optimizer.embedding_gradient_scale: got 1.5, expected a finite number, 0 to "
      "1");
}

// The contract's own example (design, section 5), but for the two keys that are not built yet.
TEST(RunConfig, TakesTheContractsExample) {
  const Loaded loaded = parse(R"(
[run]                       # everything
name = "quickstart"
output = "runs/quickstart"
seed = 1234
steps = 200                 # or tokens = "2B"
device = "cpu"              # "cuda"
ranks = 2
threads = 0
rendezvous = "auto"

[plugins]
path = ["build/plugins"]

[model]
preset = "tiny"

[data]
train = ["data/*.txt"]
validation = []
validation_fraction = 0.02
tokenizer = "bytes"
sequence_tokens = 256
order = "shuffled"

[validation]
every = "50 steps"
sequences = 64

[batch_scheduler]
plugin = "fixed"
[batch_scheduler.fixed]
sequences = 16
micro_sequences = 4

[communicator]
plugin = "gloo"
timeout = "30s"
[sharding]
plugin = "zero2"
[optimizer]
plugin = "adamw"
gradient_clip_norm = 1.0
[optimizer.adamw]
beta1 = 0.9
beta2 = 0.95
epsilon = 1e-8
weight_decay = 0.1
[precision]
plugin = "bf16"
[schedule]
learning_rate = [{ until = "20 steps", to = 3e-4, shape = "linear" }, { until = "end", to = 3e-5, shape = "cosine" }]
expert_bias_rate = 0.001
[checkpoint]
plugin = "sharded"
every = "100 steps"
tag = ""
keep = 3
asynchronous = false
[profiler]
plugins = ["monitor"]
)");
  ASSERT_TRUE(loaded.ok()) << problems_of(loaded);
  const RunConfig& c = loaded.config;
  EXPECT_EQ(c.run.ranks, 2);
  EXPECT_EQ(c.sharding, "zero2");
  EXPECT_EQ(c.precision, "bf16");
  EXPECT_THAT(c.profilers, ElementsAre("monitor"));
  EXPECT_EQ(c.schedule.learning_rate[0],
            (SchedulePhase{SchedulePhase::Until::Steps, 20, 3e-4, SchedulePhase::Shape::Linear}));
  EXPECT_EQ(c.schedule.learning_rate[1],
            (SchedulePhase{SchedulePhase::Until::End, 0, 3e-5, SchedulePhase::Shape::Cosine}));
  ASSERT_NE(c.plugin_table("optimizer", "adamw"), nullptr);
  EXPECT_EQ(*c.plugin_table("optimizer", "adamw")->find("epsilon")->real(), 1e-8);
  EXPECT_EQ(c.plugin_table("optimizer", "adamw")->find("epsilon")->where.line, 47);
}

TEST(RunConfig, EveryRecipeLoads) {
  for (const auto& entry : std::filesystem::directory_iterator(CIUIC_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".toml") {
      const Loaded loaded = load_config(entry.path().string());
      EXPECT_TRUE(loaded.ok()) << problems_of(loaded);
    }
  }
}

TEST(RunConfig, MissingFileIsOneProblem) {
  const Loaded loaded = load_config("/nowhere/x.toml");
  EXPECT_EQ(problems_of(loaded), "/nowhere/x.toml: cannot be read: No such file or directory");
}

TEST(RunConfig, AllProblemsComeAtOnceInTheFilesOrder) {
  const Loaded loaded = parse(
      "[run]\n"
      "steps = \"many\"\n"
      "ranks = 0\n"
      "stpes = 3\n"
      "[optimiser]\n"
      "plugin = \"adamw\"\n"
      "[data]\n"
      "train = \"a.txt\"\n"
      "order = \"shufled\"\n"
      "[optimizer]\n"
      "gradient_clipp1ng = 1.0\n"
      "steps = 3\n"
      "[precision]\n"
      "plugin = \"../../evil\"\n");
  EXPECT_EQ(
      problems_of(loaded),
      "x.toml: model.preset or model.from is missing\n"
      "x.toml:2: run.steps: got \"many\", expected a count such as 200 or \"2B\", 1 or more\n"
      "x.toml:3: run.ranks: got 0, expected an integer, 1 to 65536\n"
      "x.toml:4: run.stpes is no key; did you mean steps?\n"
      "x.toml:5: optimiser is no table; did you mean optimizer?\n"
      "x.toml:8: data.train: got \"a.txt\", expected a list of strings, such as [\"a\", \"b\"]\n"
      "x.toml:9: data.order: got \"shufled\", expected one of shuffled | sequential; did you mean "
      "shuffled?\n"
      "x.toml:11: optimizer.gradient_clipp1ng is no key; did you mean gradient_clip_norm?\n"
      "x.toml:12: optimizer.steps is no key; it belongs to [run]\n"
      "x.toml:14: precision.plugin: got \"../../evil\", expected the name of a plugin: letters, "
      "digits, - and _");
}

struct Case {
  std::string added;
  std::string problem;  // without file; "": good
};

class RunConfigValues : public testing::TestWithParam<Case> {};

TEST_P(RunConfigValues, AreCheckedOneByOne) {
  const Loaded loaded = parse(kMinimal + GetParam().added);
  EXPECT_EQ(problems_of(loaded), GetParam().problem.empty() ? "" : "x.toml:" + GetParam().problem);
}

// What DeepSpeed let pass (deepspeedai/DeepSpeed#653, #774, #1809).
INSTANTIATE_TEST_SUITE_P(
    B058, RunConfigValues,
    testing::Values(
        Case{"[optimizer]\ngradient_clipp1ng = 1.0",
             "8: optimizer.gradient_clipp1ng is no key; did you mean gradient_clip_norm?"},
        Case{"gradient_clip_norm = 1.0",
             "7: data.gradient_clip_norm is no key; it belongs to [optimizer] or [schedule]"},
        Case{"[optimizer]\ngradient_clip_norm = \"1\"",
             "8: optimizer.gradient_clip_norm: got \"1\", expected a finite number, 0 or more"},
        Case{"[optimizer]\ngradient_clip_norm = nan",
             "8: optimizer.gradient_clip_norm: got nan, expected a finite number, 0 or more"},
        Case{"[optimizer]\ngradient_clip_norm = inf",
             "8: optimizer.gradient_clip_norm: got inf, expected a finite number, 0 or more"},
        Case{"[schedule]\nlearning_rate = -1e-3",
             "8: schedule.learning_rate: got -0.001, expected a finite number, 0 to 1000000, or a "
             "list of phases"},
        Case{"[schedule]\nlearning_rate = nan",
             "8: schedule.learning_rate: got nan, expected a finite number, 0 to 1000000, or a "
             "list of phases"},
        Case{"[schedule]\nlearning_rate = 1e-5", ""}, Case{"[schedule]\nlearning_rate = 1", ""},
        Case{"[optimizer]\ngradient_clip_norm = 1", ""},
        Case{"[checkpoint]\nkeep = 2.0",
             "8: checkpoint.keep: got 2.0, expected an integer, 0 or more"}));

INSTANTIATE_TEST_SUITE_P(
    Types, RunConfigValues,
    testing::Values(
        Case{"[validation]\nevery = \"1 epoch\"", ""}, Case{"[validation]\nevery = \"10m\"", ""},
        Case{"[validation]\nevery = \"never\"\nsequences = 3", ""},
        Case{"[validation]\nevery = 50",
             "8: validation.every: got 50, expected \"50 steps\", \"1 epoch\", \"10m\" or "
             "\"never\""},
        Case{"[validation]\nevery = \"0 steps\"",
             "8: validation.every: got \"0 steps\", expected \"50 steps\", \"1 epoch\", \"10m\" or "
             "\"never\""},
        Case{"[communicator]\ntimeout = \"250ms\"", ""},
        Case{"[communicator]\ntimeout = 30",
             "8: communicator.timeout: got 30, expected a duration such as \"30s\" or \"10m\", 1ms "
             "or more"},
        Case{"sequence_tokens = \"2K\"", ""},
        Case{"sequence_tokens = 0",
             "7: data.sequence_tokens: got 0, expected a count such as 200 or \"2B\", 1 to "
             "16777216"},
        Case{"[checkpoint]\nasynchronous = 1",
             "8: checkpoint.asynchronous: got 1, expected true or false"},
        Case{"[profiler]\nplugins = [\"a\", \"a\"]",
             "8: profiler.plugins: got [\"a\", \"a\"], expected a list of names of plugins, each "
             "once"},
        Case{"[profiler]\nplugins = [1]",
             "8: profiler.plugins: got [1], expected a list of names of plugins, each once"},
        Case{"validation = [\"\"]",
             "7: data.validation: got [\"\"], expected a list of strings, such as [\"a\", \"b\"]"},
        Case{"validation = [\"a\\u0000b\"]",
             "7: data.validation: got [\"a\\u0000b\"], expected a list of strings, such as [\"a\", "
             "\"b\"]"},
        Case{"order = 2024-01-01",
             "7: data.order: got 2024-01-01, expected one of shuffled | sequential"},
        Case{"[optimizer.plugin]\na = 1",
             "7: optimizer.plugin: got { a = 1 }, expected the name of a plugin: letters, digits, "
             "- and _"},
        Case{"[optimizer]\nbeta1 = 0.9",
             "8: optimizer.beta1 is no key; options of a plugin stand in a table of its own: "
             "[optimizer.<plugin>]"},
        Case{"[schedule.warmup]\nsteps = 3", "7: schedule.warmup is no key"},
        Case{"[nothing_like_it]\na = 3", "7: nothing_like_it is no table"}));

INSTANTIATE_TEST_SUITE_P(
    Phases, RunConfigValues,
    testing::Values(
        Case{"[schedule]\nlearning_rate = []",
             "8: schedule.learning_rate: got [], expected a finite number, 0 to 1000000, or a list "
             "of phases"},
        Case{"[schedule]\nlearning_rate = [\n{ until = \"end\", to = 1, shape = \"cosin\" },\n]",
             "9: schedule.learning_rate[0].shape: got \"cosin\", expected one of linear | constant "
             "| cosine | step | exponential | sqrt | inverse_sqrt"},
        Case{"[schedule]\nlearning_rate = [\n{ until = \"20\", to = 1, shape = \"linear\" },\n]",
             "9: schedule.learning_rate[0].until: got \"20\", expected \"20 steps\", \"2B tokens\" "
             "or \"end\""},
        Case{"[schedule]\nlearning_rate = [\n{ untill = \"end\", until = \"end\", to = 1, shape = "
             "\"linear\" },\n]",
             "9: schedule.learning_rate[0].untill is no key; did you mean until?"},
        Case{"[schedule]\nlearning_rate = [\n{ until = \"end\", shape = \"linear\" },\n]",
             "9: schedule.learning_rate[0].to is missing"},
        Case{
            "[schedule]\nlearning_rate = [\n{ until = \"end\", to = 1, shape = \"linear\" },\n"
            "{ until = \"9 steps\", to = 1, shape = \"linear\" },\n]",
            "10: schedule.learning_rate[1] has no effect: the phase before it lasts until the end"},
        Case{"[schedule]\nlearning_rate = [\n{ until = \"9 steps\", to = 1, shape = \"linear\" },\n"
             "{ until = \"9 steps\", to = 1, shape = \"linear\" },\n]",
             "10: schedule.learning_rate[1]: until 9 steps is not after the phase before it"},
        Case{"[schedule]\nlearning_rate = [\n{ until = \"0 steps\", to = 1, shape = \"step\" },\n"
             "{ until = \"end\", to = 0, shape = \"cosine\" },\n]",
             ""},
        Case{"[schedule]\nlearning_rate = [\n{ until = \"9 steps\", to = 1, shape = \"linear\" },\n"
             "{ until = \"20 steps\", shape = \"inverse_sqrt\" },\n"
             "{ until = \"1M tokens\", to = 1e-3, shape = \"exponential\" },\n"
             "{ until = \"end\", to = 0, shape = \"sqrt\" },\n]",
             ""},
        Case{"[schedule]\nlearning_rate = [\n{ until = \"9 steps\", to = 1, shape = \"linear\" },\n"
             "{ until = \"end\", to = 1, shape = \"inverse_sqrt\" },\n]",
             "10: schedule.learning_rate[1].to has no effect: inverse_sqrt falls from the value "
             "before it as 1 / sqrt(position)"},
        Case{"[schedule]\nlearning_rate = [\n{ until = \"end\", shape = \"inverse_sqrt\" },\n]",
             "9: schedule.learning_rate[0]: inverse_sqrt begins at the value before it, which must "
             "be above 0; put a phase in front of it"},
        Case{"[schedule]\nlearning_rate = [\n{ until = \"9 steps\", to = 1, shape = \"linear\" },\n"
             "{ until = \"end\", to = 0, shape = \"exponential\" },\n]",
             "10: schedule.learning_rate[1].to: exponential never reaches 0; give a number above "
             "it"},
        Case{"[schedule]\nexpert_bias_rate = [\n{ until = \"14.3T tokens\", to = 0.001, shape = "
             "\"constant\" },\n"
             "{ until = \"end\", to = 0, shape = \"step\" },\n]",
             ""}));

INSTANTIATE_TEST_SUITE_P(
    WithoutEffectOrNotBuilt, RunConfigValues,
    testing::Values(
        Case{"validation = [\"v.txt\"]\nvalidation_fraction = 0.1",
             "8: data.validation_fraction has no effect: data.validation names files of their own"},
        Case{"validation_fraction = 0\n[validation]\nevery = \"5 steps\"",
             "9: validation.every has no effect: data.validation is empty and "
             "data.validation_fraction 0; "
             "use \"never\""},
        Case{"validation_fraction = 0", ""},
        Case{"tokenizer = \"\"",
             "7: data.tokenizer: got \"\", expected \"bytes\" or the path of a tokenizer.json"},
        Case{"[optimizer]\ngradient_clip_norm = 1\n[schedule]\ngradient_clip_norm = 2",
             "10: schedule.gradient_clip_norm: optimizer.gradient_clip_norm sets it already; keep "
             "one of them"},
        Case{"[schedule]\ngradient_clip_norm = 2", ""},
        Case{"[checkpoint]\nasynchronous = true",
             "8: checkpoint.asynchronous: not built yet; use false"}));

TEST(RunConfig, AnOverriddenClipNormReplacesTheOther) {
  const std::string file = kMinimal + "[optimizer]\ngradient_clip_norm = 3\n";
  EXPECT_EQ(parse(file).config.clip_norm(), ScheduleSection::constant(3));
  const Loaded loaded = parse(file, {"schedule.gradient_clip_norm=2"});
  EXPECT_TRUE(loaded.ok()) << problems_of(loaded);
  EXPECT_EQ(loaded.config.clip_norm(), ScheduleSection::constant(2));
}

TEST(RunConfig, LengthIsSaidExactlyOnce) {
  EXPECT_EQ(problems_of(parse(
                "[run]\nname = \"a\"\n[model]\npreset = \"tiny\"\n[data]\ntrain = [\"a\"]\n")),
            "x.toml:1: run.steps or run.tokens is missing");
  EXPECT_EQ(problems_of(parse("[run]\nsteps = 3\ntokens = \"2B\"\n[model]\npreset = "
                              "\"tiny\"\n[data]\ntrain = [\"a\"]\n")),
            "x.toml:3: run.tokens: run.steps sets the length already; keep one of them");
  const Loaded tokens =
      parse("[run]\ntokens = \"2B\"\n[model]\npreset = \"tiny\"\n[data]\ntrain = [\"a\"]\n");
  EXPECT_TRUE(tokens.ok());
  EXPECT_EQ(tokens.config.run.tokens, 2'000'000'000);
}

TEST(RunConfig, ModelIsSaidExactlyOnce) {
  const std::string rest = "[run]\nsteps = 3\n[data]\ntrain = [\"a\"]\n[model]\n";
  EXPECT_EQ(problems_of(parse(rest)), "x.toml:5: model.preset or model.from is missing");
  EXPECT_EQ(problems_of(parse(rest + "preset = \"tiny\"\nfrom = \"hf\"")),
            "x.toml:7: model.from: model.preset names the model already; keep one of them");
  EXPECT_EQ(problems_of(parse(rest + "preset = \"\"")),
            "x.toml:6: model.preset: got \"\", expected a name");
  EXPECT_EQ(problems_of(parse(rest + "hidden_size = 64")), "");
}

TEST(RunConfig, ModelFieldsAreCheckedByName) {
  const std::vector<ModelField> fields{{"hidden_size", "integer", ""},
                                       {"q_lora_rank", "integer or null", ""},
                                       {"rope_theta", "number", ""}};
  const auto load = [&](const std::string& added) {
    return parse_config("[run]\nsteps = 1\n[data]\ntrain = [\"a\"]\n[model]\n" + added, "x.toml",
                        {}, fields);
  };
  const Loaded good =
      load("preset = \"tiny\"\nhidden_size = 64\nq_lora_rank = \"none\"\nrope_theta = 10000");
  ASSERT_TRUE(good.ok()) << problems_of(good);
  ASSERT_EQ(good.config.model.overrides.size(), 3u);
  EXPECT_EQ(model_value(good.config.model.overrides[0].node), nlohmann::json(64));
  EXPECT_TRUE(model_value(good.config.model.overrides[1].node).is_null());
  EXPECT_EQ(problems_of(load("hiden_size = 64\nhidden_size = 1.5\nsteps = 3")),
            "x.toml:6: model.hiden_size is no key; did you mean hidden_size?\n"
            "x.toml:7: model.hidden_size: got 1.5, expected the type integer\n"
            "x.toml:8: model.steps is no key; it belongs to [run]");
}

TEST(RunConfig, TablesOfOtherPluginsMayStay) {
  const Loaded loaded = parse(
      kMinimal + "[sharding]\nplugin = \"ddp\"\n[sharding.zero9]\nanything = [1, { a = 2 }]\n");
  ASSERT_TRUE(loaded.ok()) << problems_of(loaded);
  EXPECT_NE(loaded.config.plugin_table("sharding", "zero9"), nullptr);
  EXPECT_EQ(loaded.config.plugin_table("sharding", "ddp"), nullptr);
}

TEST(RunConfig, OverridesBeatTheFile) {
  const Loaded loaded =
      parse(kMinimal, {"run.steps=50", "communicator.plugin=local", "data.train=[\"a\",\"b\"]",
                       "optimizer.adamw.beta1=0.8", "validation.every=7 steps", "run.steps=60",
                       "run.name=2024", "optimizer.gradient_clip_norm=1e-5"});
  ASSERT_TRUE(loaded.ok()) << problems_of(loaded);
  EXPECT_EQ(loaded.config.run.steps, 60);
  EXPECT_EQ(loaded.config.run.name, "2024");
  EXPECT_EQ(loaded.config.communicator.plugin, "local");
  EXPECT_THAT(loaded.config.data.train, ElementsAre("a", "b"));
  EXPECT_EQ(loaded.config.validation.every.count, 7);
  EXPECT_EQ(*loaded.config.plugin_table("optimizer", "adamw")->find("beta1")->real(), 0.8);
}

TEST(RunConfig, ProblemsOfOverridesNameThem) {
  const Loaded loaded =
      parse(kMinimal, {"run.stpes=3", "run.ranks=none", "run", "=3", "a..b=3", "run.steps.x=3"});
  EXPECT_EQ(problems_of(loaded),
            "--set : expected table.key=value, such as run.steps=50\n"
            "--set a..b: expected table.key=value, such as run.steps=50\n"
            "--set run: expected table.key=value, such as run.steps=50\n"
            "--set run.ranks: run.ranks: got \"none\", expected an integer, 1 to 65536\n"
            "--set run.steps.x: steps is an integer, not a table\n"
            "--set run.stpes: run.stpes is no key; did you mean steps?");
}

TEST(RunConfig, AnOverrideReplacesWhatItExcludes) {
  const Loaded tokens = parse(kMinimal, {"run.tokens=2K"});
  ASSERT_TRUE(tokens.ok()) << problems_of(tokens);
  EXPECT_EQ(tokens.config.run.tokens, 2000);
  EXPECT_EQ(tokens.config.run.steps, std::nullopt);
  EXPECT_TRUE(parse(kMinimal, {"model.from=hf"}).ok());
  EXPECT_TRUE(parse(kMinimal + "validation_fraction = 0.1", {"data.validation=[\"v\"]"}).ok());
  EXPECT_FALSE(parse(kMinimal, {"run.tokens=2K", "run.steps=3"}).ok());
}

TEST(RunConfig, DuplicateKeysAreAllFound) {
  const Loaded loaded = parse(
      "[run]\n"
      "steps = 200\n"
      "steps = 300\n"
      "seed = 1\n"
      "seed = 2\n"
      "stpes = 2\n"
      "[model]\n"
      "preset = \"tiny\"\n"
      "[data]\n"
      "train = [\"a.txt\"]\n");
  const std::string text = problems_of(loaded);
  EXPECT_THAT(text, HasSubstr("x.toml:3:"));
  EXPECT_THAT(text, HasSubstr("x.toml:5:"));
  EXPECT_THAT(text, HasSubstr("x.toml:6: run.stpes is no key; did you mean steps?"));
  EXPECT_EQ(loaded.problems.size(), 3u) << text;
}

TEST(RunConfig, SyntaxErrorIsOneProblemWithItsPlace) {
  for (const std::string line :
       {"keep = 1.", "keep = 9223372036854775808", "keep =", "[unclosed", "keep = 'a"}) {
    const Loaded loaded = parse(kMinimal + "[checkpoint]\n" + line + "\n");
    ASSERT_EQ(loaded.problems.size(), 1u) << line << "\n" << problems_of(loaded);
    EXPECT_THAT(problems_of(loaded), HasSubstr("x.toml:8:")) << line;
    EXPECT_GT(loaded.problems[0].column, 0);
  }
}

TEST(RunConfig, RendezvousIsOneOfFourForms) {
  const auto with = [](const std::string& value) {
    return parse(kMinimal, {"run.rendezvous=" + value});
  };
  for (const char* good : {"auto", "env://", "tcp://host:29500", "file:///shared/path"}) {
    EXPECT_TRUE(with(good).ok()) << good;
  }
  for (const char* bad : {"tcp://", "http://a", "file://relative", "", "host:29500"}) {
    EXPECT_FALSE(with(bad).ok()) << bad;
  }
}

TEST(RunConfig, ChosenPluginsAreOneOfEachKindAndAllProfilers) {
  const auto chosen =
      chosen_plugins(parse(kMinimal + "[profiler]\nplugins = [\"a\", \"b\"]").config);
  EXPECT_EQ(chosen.size(), 8u);
  EXPECT_EQ(chosen.back(), (std::pair<std::string, std::string>("profiler", "b")));
}

}  // namespace
}  // namespace ciuic::core
