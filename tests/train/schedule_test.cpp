// SPDX-License-Identifier: MIT
#include "core/train/schedule.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "core/config/run_config.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

using Shape = SchedulePhase::Shape;
using Until = SchedulePhase::Until;

constexpr int64_t kStepTokens = 4096;

BatchCourse constant(int64_t steps, int64_t step_tokens = kStepTokens) {
  return BatchCourse({static_cast<uint64_t>(steps), false},
                     StepTotals{1, static_cast<uint64_t>(step_tokens), 1});
}

/// A schedule of a run that skips no step.
struct Planned {
  Planned(const SchedulePhases& phases, BatchCourse of_run)
      : course(std::move(of_run)), schedule(phases, course) {}
  Planned(const SchedulePhases& phases, int64_t steps, int64_t step_tokens)
      : Planned(phases, constant(steps, step_tokens)) {}

  [[nodiscard]] double at(int64_t t) const {
    return schedule.at(planned_position(course, static_cast<uint64_t>(t)));
  }

  BatchCourse course;
  Schedule schedule;
};

TEST(Schedule, ANumberIsConstant) {
  const Planned schedule({{Until::End, 0, 3e-4, Shape::Constant}}, 100, kStepTokens);
  for (int64_t t : {1, 50, 100, 1000}) {
    EXPECT_EQ(schedule.at(t), 3e-4);
  }
}

TEST(Schedule, WarmUpOverNStepsBeginsAtAnNth) {
  const Planned schedule(
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
    const Planned schedule(
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
  const Planned straight(phases, 100, kStepTokens);
  EXPECT_NEAR(straight.at(40), 7.5e-4, 1e-18);
  const Planned resumed(phases, 100, kStepTokens);
  for (int64_t t = 40; t <= 100; ++t) {
    EXPECT_EQ(straight.at(t), resumed.at(t));
  }
}

TEST(Schedule, ConstantAndStepHoldTheirValueFromTheFirstStep) {
  const Planned schedule({{Until::Steps, 10, 1, Shape::Constant},
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
  const Planned schedule(
      {{Until::Tokens, 450, 1, Shape::Linear}, {Until::End, 0, 2, Shape::Constant}}, 10, 100);
  EXPECT_DOUBLE_EQ(schedule.at(4), 400.0 / 450);
  EXPECT_EQ(schedule.at(5), 2);
  const Planned whole({{Until::Tokens, 500, 1, Shape::Linear}, {Until::End, 0, 2, Shape::Constant}},
                      10, 100);
  EXPECT_EQ(whole.at(5), 1);
  EXPECT_EQ(whole.at(6), 2);
}

TEST(Schedule, AfterTheLastPhaseItsValueStays) {
  const Planned schedule({{Until::Steps, 10, 1e-3, Shape::Linear}}, 100, kStepTokens);
  EXPECT_EQ(schedule.at(11), 1e-3);
  EXPECT_EQ(schedule.at(100), 1e-3);
}

TEST(Schedule, AShortRunMayEndInsideAnEarlyPhase) {
  const Planned schedule({{Until::Steps, 20, 1, Shape::Linear}, {Until::End, 0, 0, Shape::Cosine}},
                         5, kStepTokens);
  EXPECT_EQ(schedule.at(5), 0.25);
}

TEST(Schedule, PhasesThatMixUnitsMustStillFollowEachOther) {
  EXPECT_THROW(
      Planned({{Until::Steps, 20, 1, Shape::Linear}, {Until::Tokens, 100, 0, Shape::Cosine}}, 50,
              100),
      Failure);
}

/// A phase of each shape from step 10 to 30, from 8 to 2, against its formula.
TEST(Schedule, EveryShapeIsItsFormulaAndReachesItsEnd) {
  constexpr double a = 8;
  constexpr double b = 2;
  const auto check = [&](Shape shape, auto formula) {
    const Planned schedule({{Until::Steps, 10, a, Shape::Linear},
                            {Until::Steps, 30, b, shape},
                            {Until::End, 0, 1, Shape::Step}},
                           40, 100);
    EXPECT_EQ(schedule.at(10), a);
    for (int t = 11; t < 30; ++t) {
      EXPECT_DOUBLE_EQ(schedule.at(t), formula((t - 10) / 20.0)) << t;
    }
    EXPECT_EQ(schedule.at(30), b) << "exactly";
    EXPECT_EQ(schedule.at(31), 1);
  };
  check(Shape::Linear, [](double x) { return a + (b - a) * x; });
  check(Shape::Cosine,
        [](double x) { return b + (a - b) * (1 + std::cos(std::numbers::pi * x)) / 2; });
  check(Shape::Constant, [](double) { return b; });
  check(Shape::Step, [](double) { return b; });
  check(Shape::Exponential, [](double x) { return a * std::pow(b / a, x); });
  check(Shape::Sqrt, [](double x) { return a + (b - a) * std::sqrt(x); });
}

// arXiv:1706.03762, equation 3: proportional to min(t / w^1.5, 1 / sqrt(t)).
TEST(Schedule, InverseSqrtIsThatOfTheTransformer) {
  for (const Until until : {Until::Steps, Until::Tokens}) {
    const int64_t unit = until == Until::Steps ? 1 : 100;
    const Planned schedule({{until, 16 * unit, 1, Shape::Linear},
                            {until, 64 * unit, 0, Shape::InverseSqrt},
                            {until, 80 * unit, 0, Shape::Linear}},
                           100, 100);
    for (const int64_t t : {1, 8, 15, 16, 17, 25, 63, 64}) {
      const auto s = static_cast<double>(t);
      EXPECT_DOUBLE_EQ(schedule.at(t), 4 * std::min(1 / std::sqrt(s), s / std::pow(16, 1.5))) << t;
    }
    EXPECT_EQ(schedule.at(64), 0.5);
    EXPECT_EQ(schedule.at(72), 0.25) << "the next phase begins at its end";
  }
}

// MiniCPM, arXiv:2404.06395, section 4: the rate halves every T steps of the decay; arXiv:2405.18392:
// 1 - sqrt.
TEST(Schedule, WarmUpStableDecayIsThreePhases) {
  const SchedulePhases stable{{Until::Steps, 10, 1, Shape::Linear},
                              {Until::Steps, 80, 1, Shape::Constant}};
  const auto with = [&](double to, Shape shape) {
    SchedulePhases phases = stable;
    phases.push_back({Until::End, 0, to, shape});
    return Planned(phases, 100, 100);
  };
  const Planned exponential = with(std::pow(0.5, 20.0 / 5), Shape::Exponential);  // T = 5
  const Planned square_root = with(0, Shape::Sqrt);
  EXPECT_EQ(exponential.at(80), 1);
  EXPECT_DOUBLE_EQ(exponential.at(85), 0.5);
  EXPECT_DOUBLE_EQ(exponential.at(90), 0.25);
  EXPECT_DOUBLE_EQ(square_root.at(85), 1 - std::sqrt(5.0 / 20));
  EXPECT_EQ(square_root.at(100), 0);
}

/// Batches of 100 tokens until 1000 tokens are done, then of 200.
BatchCourse doubling(RunLength length) {
  return BatchCourse(length, [](uint64_t, uint64_t, uint64_t tokens) {
    const uint64_t batch = tokens < 1000 ? 100 : 200;
    return StepTotals{batch / 100, batch, 100};
  });
}

TEST(Schedule, APhaseInTokensFollowsTheTokensOfAGrowingBatch) {
  const Planned schedule({{Until::Tokens, 2000, 1, Shape::Linear}, {Until::End, 0, 0, Shape::Step}},
                         doubling({20, false}));
  EXPECT_EQ(schedule.at(5), 0.25);
  EXPECT_EQ(schedule.at(10), 0.5);
  EXPECT_EQ(schedule.at(11), 0.6) << "a step twice as large";
  EXPECT_EQ(schedule.at(15), 1);
  EXPECT_EQ(schedule.at(16), 0);
}

TEST(Schedule, UnitsMixWhereTheBatchGrows) {
  // Step 12 is at 1400 tokens; 2400 tokens are done after step 17.
  const Planned schedule({{Until::Steps, 12, 1, Shape::Linear},
                          {Until::Tokens, 2400, 0.5, Shape::Linear},
                          {Until::Steps, 19, 0.25, Shape::Linear}},
                         doubling({30, false}));
  EXPECT_EQ(schedule.at(6), 0.5);
  EXPECT_EQ(schedule.at(12), 1);
  EXPECT_DOUBLE_EQ(schedule.at(13), 0.9);
  EXPECT_EQ(schedule.at(17), 0.5);
  EXPECT_EQ(schedule.at(18), 0.375);
  EXPECT_EQ(schedule.at(19), 0.25);
}

TEST(Schedule, TheEndCountsInWhatSetsTheLength) {
  const SchedulePhases phases{{Until::End, 0, 1, Shape::Linear}};
  const Planned in_steps(phases, doubling({15, false}));
  const Planned in_tokens(phases, doubling({2000, true}));
  ASSERT_EQ(in_tokens.course.total_steps(), 15U);
  EXPECT_DOUBLE_EQ(in_steps.at(10), 10.0 / 15);
  EXPECT_EQ(in_tokens.at(10), 0.5);
  EXPECT_EQ(in_steps.at(15), 1);
  EXPECT_EQ(in_tokens.at(15), 1);
}

TEST(Schedule, SkippedStepsAdvanceNothing) {
  const BatchCourse course = doubling({30, false});
  const Schedule schedule({{Until::Steps, 5, 1, Shape::Linear},
                           {Until::Tokens, 1500, 0, Shape::Linear},
                           {Until::End, 0, 3, Shape::Step}},
                          course);
  EXPECT_EQ(schedule.at({5, 400}), 1) << "one of the five updates was of no tokens";
  EXPECT_EQ(schedule.at({6, 500}), 1) << "the plan's place for update 5 is 500 tokens";
  EXPECT_DOUBLE_EQ(schedule.at({7, 600}), 0.9);
  EXPECT_EQ(schedule.at({30, 1500}), 0) << "tokens end it, not steps";
  EXPECT_EQ(schedule.at({13, 1700}), 3);
}

TEST(Schedule, SaysWhetherItVaries) {
  const auto varies = [](const SchedulePhases& phases) {
    return Schedule(phases, constant(100)).varies();
  };
  EXPECT_FALSE(varies({{Until::End, 0, 1, Shape::Constant}}));
  EXPECT_FALSE(varies({{Until::Steps, 5, 1, Shape::Step}, {Until::End, 0, 1, Shape::Linear}}));
  EXPECT_TRUE(varies({{Until::Steps, 5, 1, Shape::Linear}}));
  EXPECT_TRUE(varies({{Until::Steps, 5, 1, Shape::Constant}, {Until::End, 0, 2, Shape::Step}}));
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
  const BatchCourse course(RunLength::of(loaded.config.run),
                           StepTotals{15360, uint64_t{kTokens}, 4096});
  const auto steps = static_cast<int64_t>(course.total_steps());
  const Planned rate(loaded.config.schedule.learning_rate, course);
  const auto step_at = [](double tokens) { return static_cast<int64_t>(tokens / kTokens); };
  EXPECT_EQ(rate.at(1), 2.2e-4 / 2000);
  EXPECT_EQ(rate.at(2000), 2.2e-4);
  EXPECT_EQ(rate.at(step_at(9.99e12)), 2.2e-4);
  EXPECT_NEAR(rate.at(step_at(12.15e12)), (2.2e-4 + 2.2e-5) / 2, 1e-8);
  EXPECT_EQ(rate.at(step_at(14.5e12)), 2.2e-5);
  EXPECT_EQ(rate.at(steps), 7.3e-6);
  const Planned bias(loaded.config.schedule.expert_bias_rate, course);
  EXPECT_EQ(bias.at(step_at(14.29e12)), 0.001);
  EXPECT_EQ(bias.at(steps), 0);
}

}  // namespace
}  // namespace ciuic::core
