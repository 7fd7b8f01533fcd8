// SPDX-License-Identifier: MIT
#include "core/train/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/parameter_specs.h"
#include "tests/temporary_folder.h"

namespace ciuic::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct RunPlanTest : ::testing::Test {
  RunPlan plan(const std::string& text, std::vector<std::string> overrides = {}, int world = 0) {
    const std::string file = folder.write("run.toml", text);
    overrides.push_back("plugins.path=[\"" + std::string(CIUIC_BUILD_DIR) + "/plugins\"]");
    PlanRequest request;
    request.file = file;
    request.overrides = overrides;
    request.world = world;
    return make_plan(request, log);
  }
  Failure refused(const std::string& text, std::vector<std::string> overrides = {}, int world = 0) {
    try {
      (void)plan(text, std::move(overrides), world);
    } catch (const Failure& f) {
      return f;
    }
    ADD_FAILURE() << "accepted";
    return Failure(ExitCode::Done, "");
  }

  TemporaryFolder folder;
  Log log{Log::Options{0, 1, LogLevel::Off, "", false}};
  const std::string good = R"([run]
steps = 10
[model]
preset = "tiny"
[data]
train = ["x.txt"]
[schedule]
learning_rate = 1e-3
[communicator]
plugin = "local"
)";
};

TEST_F(RunPlanTest, ResolvesModelPluginsAndOptions) {
  const RunPlan p = plan(good, {"model.hidden_size=64", "optimizer.adamw.beta2=0.99"});
  EXPECT_EQ(p.model.hidden_size, 64);
  EXPECT_EQ(p.model.num_hidden_layers, 4);
  EXPECT_EQ(p.plugins.size(), 6u);
  EXPECT_EQ(p.plugin(CIUIC_KIND_OPTIMIZER).found.descriptor->name, "adamw");
  EXPECT_THAT(p.resolved(), AllOf(HasSubstr("beta2 = 0.99"), HasSubstr("hidden_size = 64")));
}

TEST_F(RunPlanTest, TheResolvedFileResolvesToItself) {
  const RunPlan first = plan(good, {"optimizer.adamw.no_decay=[\"*norm*\"]"});
  const RunPlan second = plan(first.resolved());
  EXPECT_EQ(second.resolved(), first.resolved());
  EXPECT_EQ(second.hash(), first.hash());
}

TEST_F(RunPlanTest, TheHashIgnoresWhereARunHappens) {
  const std::string hash = plan(good).hash();
  EXPECT_EQ(plan(good, {"run.output=elsewhere", "run.name=other"}).hash(), hash);
  EXPECT_NE(plan(good, {"run.seed=7"}).hash(), hash);
  EXPECT_NE(plan(good, {"optimizer.adamw.beta1=0.8"}).hash(), hash);
}

TEST_F(RunPlanTest, AllProblemsAreSaidAtOnceWithTheirLines) {
  const Failure f = refused(
      "[run]\nsteps = 10\nstepz = 3\n[optimizer]\ngradient_clipp1ng = 1.0\n[data]\ntrain = 7\n");
  EXPECT_EQ(f.code(), ExitCode::Usage);
  EXPECT_THAT(format(f), AllOf(HasSubstr("run.toml:3"), HasSubstr("run.toml:5"),
                               HasSubstr("run.toml:7"), HasSubstr("gradient_clip_norm")));
}

TEST_F(RunPlanTest, UnknownPluginOptionsNameTheNearest) {
  const Failure f = refused(good + "[optimizer.adamw]\nbetta2 = 0.9\n");
  EXPECT_EQ(f.code(), ExitCode::Usage);
  EXPECT_THAT(format(f), AllOf(HasSubstr("run.toml:12"), HasSubstr("betta2"), HasSubstr("beta2")));
}

TEST_F(RunPlanTest, BatchesThatDoNotDivideShowTheEquation) {
  const Failure f = refused(good + "[batch_scheduler.fixed]\nsequences = 10\nmicro_sequences = 4\n",
                            {"communicator.plugin=gloo"}, 2);
  EXPECT_EQ(f.code(), ExitCode::Usage);
  EXPECT_THAT(format(f),
              AllOf(HasSubstr("10"), HasSubstr("4"), HasSubstr("2"), HasSubstr("8 or 16")));
}

TEST_F(RunPlanTest, LocalOnTwoRanksIsRefused) {
  const Failure f = refused(good, {}, 2);
  EXPECT_EQ(f.code(), ExitCode::Usage);
  EXPECT_THAT(format(f), HasSubstr("set communicator.plugin = \"auto\""));
}

TEST_F(RunPlanTest, AutoTakesTheCommunicatorThatReachesAllRanks) {
  const auto used = [&](PlanRequest request) {
    request.file = folder.write("run.toml", good);
    request.overrides = {"communicator.plugin=auto",
                         "plugins.path=[\"" + std::string(CIUIC_BUILD_DIR) + "/plugins\"]"};
    const RunPlan p = make_plan(request, log);
    EXPECT_EQ(p.plugin(CIUIC_KIND_COMMUNICATOR).found.descriptor->name,
              p.config.communicator.used());
    EXPECT_THAT(p.communicator_choice,
                HasSubstr("communicator " + p.config.communicator.used() + ": "));
    EXPECT_THAT(p.resolved(), HasSubstr("plugin = \"auto\""));
    return p.config.communicator.used();
  };
  EXPECT_EQ(used({"", {}, 1, 1, {}}), "local");
  EXPECT_EQ(used({"", {}, 2, 2, {}}), "shm");
  EXPECT_EQ(used({"", {}, 4, 2, {}}), "gloo");
  EXPECT_EQ(used({"", {}, 2, 2, {{"shm", "the system refuses shared memory"}}}), "gloo");
}

TEST_F(RunPlanTest, UnknownPluginIsExitCodeThree) {
  EXPECT_EQ(refused(good, {"sharding.plugin=zero9"}).code(), ExitCode::Plugin);
}

TEST_F(RunPlanTest, ModelsThatCannotBeBuiltAreRefusedByName) {
  EXPECT_THAT(format(refused(good, {"model.scoring_func=\"softmax\""})), HasSubstr("scoring_func"));
  EXPECT_THAT(format(refused(good, {"model.num_nextn_predict_layers=-1"})),
              HasSubstr("num_nextn_predict_layers"));
  EXPECT_THAT(format(refused(good, {"model.rope_parameters={ rope_type = \"llama3\" }"})),
              HasSubstr("rope_parameters.rope_type"));
  EXPECT_THAT(format(refused(good, {"model.rope_parameters=3"})), HasSubstr("a table or"));
  EXPECT_THAT(format(refused(good, {"model.vocab_size=100"})), HasSubstr("vocab_size"));
  EXPECT_THAT(format(refused(good, {"data.sequence_tokens=4096"})),
              HasSubstr("max_position_embeddings"));
  EXPECT_THAT(format(refused(good, {"model.preset=huge"})), HasSubstr("huge"));
}

TEST_F(RunPlanTest, SizesOfNoModelAreRefusedAtOnce) {
  for (const char* override_ :
       {"model.num_hidden_layers=1000000000", "model.num_hidden_layers=100000000",
        "model.hidden_size=9000000000000000000", "model.vocab_size=2000000000",
        "model.n_routed_experts=10000000"}) {
    EXPECT_EQ(refused(good, {override_}).code(), ExitCode::Usage) << override_;
  }
}

TEST_F(RunPlanTest, ATagIsOneNameOfItsOwn) {
  for (const char* tag : {"../../victim", "a/b", "latest", "step-00000001", "..", "abandoned-x"}) {
    EXPECT_THAT(format(refused(good, {"checkpoint.tag=\"" + std::string(tag) + "\""})),
                HasSubstr("checkpoint.tag"))
        << tag;
  }
  EXPECT_NO_THROW(plan(good, {"checkpoint.tag=\"epoch-{epoch}\""}));
}

TEST_F(RunPlanTest, WhenToValidateMustNotDependOnAClock) {
  EXPECT_THAT(format(refused(good, {"validation.every=10m"})), HasSubstr("validation.every"));
}

TEST_F(RunPlanTest, NumericsHoldTheOptionsThatMoveTheLoss) {
  bool has_beta = false;
  for (const auto& [key, text] : plan(good).numerics()) {
    has_beta = has_beta || key == "optimizer.adamw.beta1";
  }
  EXPECT_TRUE(has_beta);
}

}  // namespace
}  // namespace ciuic::core
