// SPDX-License-Identifier: MIT
#include "core/train/schedule.h"

#include <gtest/gtest.h>

#include "core/config/run_config.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

using Shape = SchedulePhase::Shape;
using Until = SchedulePhase::Until;

constexpr int64_t kStepTokens = 4096;

TEST(Schedule, ANumberIsConstant) {
  const Schedule schedule({{Until::End, 0, 3e-4, Shape::Constant}}, 100, kStepTokens);
  for (int64_t t : {1, 50, 100, 1000}) {
    EXPECT_EQ(schedule.at(t), 3e-4);
  }
}

TEST(Schedule, WarmUpOverNStepsBeginsAtAnNth) {
  const Schedule schedule(
      {{Until::Steps, 20, 3e-4, Shape::Linear}, {Until::End, 0, 3e-5, Shape::Cosine}}, 200,
      kStepTokens);
  EXPECT_EQ(schedule.at(1), 3e-4 / 20);
  EXPECT_DOUBLE_EQ(schedule.at(10), 1.5e-4);
  EXPECT_EQ(schedule.at(20), 3e-4);
  EXPECT_LT(schedule.at(21), 3e-4);
  EXPECT_GT(schedule.at(21), 2.99e-4);
  EXPECT_DOUBLE_EQ(schedule.at(110), (3e-4 + 3e-5) / 2);
  EXPECT_EQ(schedule.at(200), 3e-5);
  EXPECT_EQ(schedule.at(500), 3e-5);
}

// huggingface/accelerate#2926: the rate decayed world-size times too fast. Here it is a function of
// the step alone.
TEST(Schedule, B033_CosineIsAtHalfInTheMiddle) {
  for (int64_t step_tokens : {1, 7, 4096, 62'914'560}) {
    const Schedule schedule(
        {{Until::Steps, 0, 1e-3, Shape::Step}, {Until::End, 0, 0, Shape::Cosine}}, 100,
        step_tokens);
    EXPECT_EQ(schedule.at(50), 5.0e-4);
    EXPECT_EQ(schedule.at(100), 0);
  }
}

// verl-project/verl#7953: the rate restarted after resume. There is no state to lose.
TEST(Schedule, B036_ContinuesAfterResume) {
  const SchedulePhases phases{{Until::Steps, 10, 1e-3, Shape::Linear},
                              {Until::End, 0, 0, Shape::Cosine}};
  const Schedule straight(phases, 100, kStepTokens);
  EXPECT_NEAR(straight.at(40), 7.5e-4, 1e-18);
  const Schedule resumed(phases, 100, kStepTokens);
  for (int64_t t = 40; t <= 100; ++t) {
    EXPECT_EQ(straight.at(t), resumed.at(t));
  }
}

TEST(Schedule, ConstantAndStepHoldTheirValueFromTheFirstStep) {
  const Schedule schedule({{Until::Steps, 10, 1, Shape::Constant},
                           {Until::Steps, 20, 0.316, Shape::Step},
                           {Until::End, 0, 0.1, Shape::Step}},
                          30, kStepTokens);
  EXPECT_EQ(schedule.at(1), 1);
  EXPECT_EQ(schedule.at(10), 1);
  EXPECT_EQ(schedule.at(11), 0.316);
  EXPECT_EQ(schedule.at(20), 0.316);
  EXPECT_EQ(schedule.at(21), 0.1);
}

TEST(Schedule, APhaseInTokensEndsWhereTheStepsReachThem) {
  // 10 steps of 100 tokens; the phase ends in the middle of step 5.
  const Schedule schedule(
      {{Until::Tokens, 450, 1, Shape::Linear}, {Until::End, 0, 2, Shape::Constant}}, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.at(4), 400.0 / 450);
  EXPECT_EQ(schedule.at(5), 2);
  const Schedule whole(
      {{Until::Tokens, 500, 1, Shape::Linear}, {Until::End, 0, 2, Shape::Constant}}, 10, 100);
  EXPECT_EQ(whole.at(5), 1);
  EXPECT_EQ(whole.at(6), 2);
}

TEST(Schedule, AfterTheLastPhaseItsValueStays) {
  const Schedule schedule({{Until::Steps, 10, 1e-3, Shape::Linear}}, 100, kStepTokens);
  EXPECT_EQ(schedule.at(11), 1e-3);
  EXPECT_EQ(schedule.at(100), 1e-3);
}

TEST(Schedule, AShortRunMayEndInsideAnEarlyPhase) {
  const Schedule schedule({{Until::Steps, 20, 1, Shape::Linear}, {Until::End, 0, 0, Shape::Cosine}},
                          5, kStepTokens);
  EXPECT_EQ(schedule.at(5), 0.25);
}

TEST(Schedule, PhasesThatMixUnitsMustStillFollowEachOther) {
  EXPECT_THROW(
      Schedule({{Until::Steps, 20, 1, Shape::Linear}, {Until::Tokens, 100, 0, Shape::Cosine}}, 50,
               100),
      Failure);
}

// DeepSeek-V3, arXiv:2412.19437, section 4.2: 15360 sequences of 4096 tokens a step.
TEST(Schedule, TheRecipeOfDeepSeekV3CanBeWritten) {
  const Loaded loaded = parse_config(R"(
[run]
tokens = "14.8T"
[model]
preset = "deepseek-v3"
[data]
train = ["a"]
[schedule]
learning_rate = [
  { until = "2K steps", to = 2.2e-4, shape = "linear" },
  { until = "10T tokens", to = 2.2e-4, shape = "constant" },
  { until = "14.3T tokens", to = 2.2e-5, shape = "cosine" },
  { until = "14.633T tokens", to = 2.2e-5, shape = "constant" },
  { until = "end", to = 7.3e-6, shape = "step" },
]
expert_bias_rate = [
  { until = "14.3T tokens", to = 0.001, shape = "constant" },
  { until = "end", to = 0, shape = "step" },
]
)",
                                     "v3.toml");
  ASSERT_TRUE(loaded.ok()) << format(loaded.problems);
  constexpr int64_t kTokens = int64_t{15360} * 4096;
  const int64_t steps = *loaded.config.run.tokens / kTokens;
  const Schedule rate(loaded.config.schedule.learning_rate, steps, kTokens);
  const auto step_at = [](double tokens) { return static_cast<int64_t>(tokens / kTokens); };
  EXPECT_EQ(rate.at(1), 2.2e-4 / 2000);
  EXPECT_EQ(rate.at(2000), 2.2e-4);
  EXPECT_EQ(rate.at(step_at(9.99e12)), 2.2e-4);
  EXPECT_NEAR(rate.at(step_at(12.15e12)), (2.2e-4 + 2.2e-5) / 2, 1e-8);
  EXPECT_EQ(rate.at(step_at(14.5e12)), 2.2e-5);
  EXPECT_EQ(rate.at(steps), 7.3e-6);
  const Schedule bias(loaded.config.schedule.expert_bias_rate, steps, kTokens);
  EXPECT_EQ(bias.at(step_at(14.29e12)), 0.001);
  EXPECT_EQ(bias.at(steps), 0);
}

}  // namespace
}  // namespace ciuic::core
