// SPDX-License-Identifier: MIT
#include "core/bench/step_clock.h"

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

using Clock = StepClock::Clock;

double seconds_of(const StepClock::Sheet& sheet, Phase phase, Part part) {
  return sheet[static_cast<size_t>(phase)][static_cast<size_t>(part)];
}

void work_for(std::chrono::milliseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

struct StepClockTest : ::testing::Test {
  StepClockTest() { StepClock::current = &clock; }
  ~StepClockTest() override { StepClock::current = nullptr; }

  StepClock clock;
};

TEST_F(StepClockTest, ChargesAnInnerPartAndNotItsOuterOne) {
  using namespace std::chrono_literals;
  clock.take();
  {
    const PhaseSpan phase(Phase::Forward);
    const PartSpan outer(Part::Experts);
    work_for(2ms);
    {
      const PartSpan inner(Part::Router);
      work_for(4ms);
    }
    work_for(2ms);
  }
  const StepClock::Sheet sheet = clock.take();
  EXPECT_GE(seconds_of(sheet, Phase::Forward, Part::Experts), 4e-3);
  EXPECT_GE(seconds_of(sheet, Phase::Forward, Part::Router), 4e-3);
  EXPECT_EQ(seconds_of(sheet, Phase::Backward, Part::Experts), 0);
}

TEST_F(StepClockTest, AllTogetherIsTheTimeThatPassed) {
  using namespace std::chrono_literals;
  const auto begin = Clock::now();
  clock.take();
  for (const Part part : {Part::Norm, Part::Attention, Part::Loss}) {
    const PartSpan span(part);
    work_for(1ms);
  }
  const StepClock::Sheet sheet = clock.take();
  const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
  double sum = 0;
  for (const auto& phase : sheet) {
    for (const double seconds : phase) {
      sum += seconds;
    }
  }
  EXPECT_GE(sum, 3e-3);
  EXPECT_LE(sum, passed);
}

TEST(StepClock, SpansWithoutAClockDoNothing) {
  ASSERT_EQ(StepClock::current, nullptr);
  const PhaseSpan phase(Phase::Forward);
  const PartSpan part(Part::Loss);
  StepClock later;
  later.take();
  EXPECT_EQ(seconds_of(later.take(), Phase::Forward, Part::Loss), 0);
}

}  // namespace
}  // namespace ciuic::core
