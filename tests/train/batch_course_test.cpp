// SPDX-License-Identifier: MIT
#include "core/train/batch_course.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

/// 10 tokens a sample; 4, 6, 8, ... 20 samples as the run goes on, and counts its calls.
struct Growing {
  StepTotals operator()(uint64_t, uint64_t samples, uint64_t) {
    ++calls;
    const uint64_t batch = std::min<uint64_t>(20, 4 + samples / 100 * 2);
    return {batch, batch * 10, 10};
  }
  int calls = 0;
};

/// What a course must say, step by step.
void expect_walk(const BatchCourse& course) {
  Growing growing;
  uint64_t samples = 0;
  for (uint64_t step = 1; step <= course.total_steps(); ++step) {
    const StepTotals totals = growing(step, samples, samples * 10);
    ASSERT_EQ(course.of_step(step), totals) << step;
    samples += totals.samples;
    ASSERT_EQ(course.tokens_at(static_cast<double>(step)), static_cast<double>(samples * 10));
    ASSERT_EQ(course.steps_at(static_cast<double>(samples * 10)), static_cast<double>(step));
  }
}

TEST(BatchCourse, ConstantBatchesDivide) {
  const BatchCourse course({4099, true}, StepTotals{2, 2048, 1024});
  EXPECT_EQ(course.total_steps(), 3U);
  EXPECT_EQ(course.total_tokens(), 3 * 2048);
  EXPECT_TRUE(course.is_constant());
  EXPECT_EQ(course.tokens_at(2.5), 5120);
  EXPECT_EQ(course.steps_at(1024), 0.5);
  EXPECT_EQ(BatchCourse({4096, true}, StepTotals{2, 2048, 1024}).total_steps(), 2U);
  EXPECT_EQ(BatchCourse({7, false}, StepTotals{2, 2048, 1024}).total_steps(), 7U);
}

TEST(BatchCourse, GrowingBatchesAreThoseOfAWalk) {
  for (const uint64_t steps : {1, 2, 3, 24, 25, 26, 27, 200}) {
    const BatchCourse course({steps, false}, Growing());
    EXPECT_EQ(course.total_steps(), steps);
    expect_walk(course);
  }
}

TEST(BatchCourse, ALengthInTokensEndsWithTheStepThatReachesIt) {
  for (const uint64_t tokens : {1, 39, 40, 41, 999, 1000, 1001, 12345, 20000}) {
    const BatchCourse course({tokens, true}, Growing());
    expect_walk(course);
    EXPECT_GE(course.total_tokens(), static_cast<double>(tokens));
    EXPECT_LT(course.tokens_at(static_cast<double>(course.total_steps() - 1)),
              static_cast<double>(tokens));
  }
}

TEST(BatchCourse, ALongRunCostsAFewCalls) {
  Growing growing;
  const BatchCourse course({1'000'000'000'000'000, true}, std::ref(growing));
  EXPECT_EQ(course.stretches().size(), 9U);
  EXPECT_LT(growing.calls, 200);
  EXPECT_GT(course.total_steps(), 4'900'000'000'000U);
  Growing again;
  const BatchCourse steps({1'000'000'000'000'000, false}, std::ref(again));
  EXPECT_EQ(steps.total_steps(), 1'000'000'000'000'000U);
  EXPECT_LT(again.calls, 200);
}

TEST(BatchCourse, WhatShrinksOrIsEmptyIsThePluginsFault) {
  const auto code = [](const BatchCourse::Ask& ask) {
    try {
      (void)BatchCourse({100, false}, ask);
    } catch (const Failure& f) {
      return f.code();
    }
    return ExitCode::Done;
  };
  EXPECT_EQ(code([](uint64_t step, uint64_t, uint64_t) {
              const uint64_t n = step < 10 ? 8 : 4;
              return StepTotals{n, n, 1};
            }),
            ExitCode::Plugin);
  EXPECT_EQ(code([](uint64_t, uint64_t, uint64_t) { return StepTotals{}; }), ExitCode::Plugin);
}

}  // namespace
}  // namespace ciuic::core
