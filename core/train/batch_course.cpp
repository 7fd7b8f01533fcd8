// SPDX-License-Identifier: MIT
#include "core/train/batch_course.h"

#include <algorithm>
#include <string>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

using Stretch = BatchCourse::Stretch;

/// Counters of a request stay below it.
constexpr uint64_t kFarthest = uint64_t{1} << 62;

uint64_t divided_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Steps of the stretch's kind until the run's end or kFarthest.
uint64_t steps_left(const Stretch& stretch, RunLength length) {
  const uint64_t done = length.is_in_tokens ? stretch.tokens_before : stretch.first - 1;
  const uint64_t left = done >= length.count ? 0 : length.count - done;
  return length.is_in_tokens
             ? divided_up(left, stretch.each.tokens)
             : std::min(left, (kFarthest - stretch.tokens_before) / stretch.each.tokens);
}

/// The stretch that begins `steps` later, its totals not known yet.
Stretch after(const Stretch& stretch, uint64_t steps) {
  return {stretch.first + steps,
          stretch.samples_before + steps * stretch.each.samples,
          stretch.tokens_before + steps * stretch.each.tokens,
          {}};
}

StepTotals ask_at(const BatchCourse::Ask& ask, const Stretch& at) {
  return ask(at.first, at.samples_before, at.tokens_before);
}

/// How many steps from the stretch's first on are like it, at most `most`. Totals only grow, so one
/// look at a step tells of all before it: doubling, then halving.
uint64_t equal_steps(const BatchCourse::Ask& ask, const Stretch& stretch, uint64_t most) {
  const auto is_equal = [&](uint64_t steps) {
    return ask_at(ask, after(stretch, steps)) == stretch.each;
  };
  uint64_t equal = 0;  // the step so many later is like the first
  uint64_t other = 1;
  while (other < most && is_equal(other)) {
    equal = other;
    other *= 2;
  }
  other = std::min(other, most);
  while (other - equal > 1) {
    const uint64_t middle = equal + (other - equal) / 2;
    (is_equal(middle) ? equal : other) = middle;
  }
  return other;
}

void check_totals(const Stretch& at, const StepTotals& before) {
  if (at.each.samples == 0 || at.each.tokens == 0) {
    throw Failure(ExitCode::Plugin,
                  "the batch scheduler plans no tokens for step " + std::to_string(at.first));
  }
  if (at.each.samples < before.samples || at.each.tokens < before.tokens ||
      at.each.row_tokens < before.row_tokens) {
    throw Failure(ExitCode::Plugin,
                  "the batch scheduler says that its batches grow, but that of step " +
                      std::to_string(at.first) + " is smaller than the one before it");
  }
}

}  // namespace

RunLength RunLength::of(const RunSection& run) {
  return run.steps ? RunLength{static_cast<uint64_t>(*run.steps), false}
                   : RunLength{static_cast<uint64_t>(run.tokens.value_or(0)), true};
}

BatchCourse::BatchCourse(RunLength length, const StepTotals& each)
    : BatchCourse(length, Ask([&](uint64_t, uint64_t, uint64_t) { return each; })) {}

BatchCourse::BatchCourse(RunLength length, const Ask& ask) : is_in_tokens_(length.is_in_tokens) {
  Stretch next;
  StepTotals before;
  do {
    next.each = ask_at(ask, next);
    check_totals(next, before);
    stretches_.push_back(next);
    const uint64_t left = steps_left(next, length);
    const uint64_t steps = left > 0 ? equal_steps(ask, next, left) : 0;
    total_steps_ = next.first - 1 + steps;
    if (steps == left) {
      break;
    }
    before = next.each;
    next = after(next, steps);
  } while (true);
  if (!length.is_in_tokens) {
    total_steps_ = length.count;
  }
}

double BatchCourse::tokens_at(double steps) const {
  const auto next = std::upper_bound(
      stretches_.begin() + 1, stretches_.end(), steps,
      [](double s, const Stretch& x) { return s < static_cast<double>(x.first - 1); });
  const Stretch& in = *(next - 1);
  return static_cast<double>(in.tokens_before) +
         (steps - static_cast<double>(in.first - 1)) * static_cast<double>(in.each.tokens);
}

double BatchCourse::steps_at(double tokens) const {
  const auto next = std::upper_bound(
      stretches_.begin() + 1, stretches_.end(), tokens,
      [](double t, const Stretch& x) { return t < static_cast<double>(x.tokens_before); });
  const Stretch& in = *(next - 1);
  return static_cast<double>(in.first - 1) +
         (tokens - static_cast<double>(in.tokens_before)) / static_cast<double>(in.each.tokens);
}

const StepTotals& BatchCourse::of_step(uint64_t step) const {
  const auto next = std::upper_bound(stretches_.begin() + 1, stretches_.end(), step,
                                     [](uint64_t s, const Stretch& x) { return s < x.first; });
  return (next - 1)->each;
}

}  // namespace ciuic::core
