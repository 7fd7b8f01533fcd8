// SPDX-License-Identifier: MIT
//
// The loss scale as an automaton over finite and non-finite steps. Which one is the policy's own
// business; that it is one is not: the scale moves in update alone, and equally on all ranks.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "policy_tests.hpp"

namespace ciuic::testing {
namespace {

constexpr const char* kStatic = "loss_scale:static";
constexpr const char* kPowerOfTwo = "loss_scale:power_of_two";
constexpr int kLongRun = 200'000;  // clean steps in which any window has gone by

bool says_dynamic(const ciuic_descriptor& descriptor) {
  return has_feature(descriptor, "loss_scale:dynamic") ||
         has_feature(descriptor, "loss_scale:deepspeed") ||
         has_feature(descriptor, "loss_scale:megatron");
}

bool says_static(const TestContext& context) {
  return has_feature(context.plugin.descriptor(), kStatic) || scaler_of(context) == "static";
}

/// A policy scales when it says so or when its first scale is not 1.
bool scales(const TestContext& context) {
  return says_dynamic(context.plugin.descriptor()) || PolicyBench(context).loss_scale() != 1.0;
}
void need_dynamic(const TestContext& context) {
  if (!scales(context)) {
    throw NotOffered("the policy does not scale the loss: its scale is 1");
  }
  if (says_static(context)) {
    throw NotOffered(
        "the feature \"loss_scale:static\", or the option \"scaler\", says that the "
        "scale never changes");
  }
}

/// Bursts of non-finite steps between clean stretches, short and long.
std::vector<bool> script(uint64_t seed, size_t length) {
  std::mt19937_64 random(seed);
  std::vector<bool> out;
  while (out.size() < length) {
    out.insert(out.end(), 1 + random() % 4, false);
    out.insert(out.end(), random() % 4 == 0 ? 900 + random() % 1200 : random() % 12, true);
  }
  out.resize(length);
  return out;
}

struct Trace {
  std::vector<double> scales;  // after each update
  bool gave_up = false;
};
Trace run(PolicyBench& policy, const std::vector<bool>& steps, int reads_of_scale) {
  Trace out;
  for (const bool is_finite : steps) {
    for (int i = 1; i < reads_of_scale; ++i) {
      (void)policy.loss_scale();
    }
    if (policy.update(is_finite)) {
      out.gave_up = true;
      break;
    }
    out.scales.push_back(policy.loss_scale());
  }
  return out;
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

void expect_equal(const Trace& got, const Trace& expected, const std::string& what) {
  for (size_t i = 0; i < got.scales.size() && i < expected.scales.size(); ++i) {
    require(got.scales[i] == expected.scales[i], [&] {
      return what + ": after update " + std::to_string(i + 1) + " the scale is " +
             number(got.scales[i]) + ", expected " + number(expected.scales[i]);
    });
  }
  require(got.scales.size() == expected.scales.size() && got.gave_up == expected.gave_up, [&] {
    return what + ": one fails in update " + std::to_string(got.scales.size() + 1) +
           ", the other in " + std::to_string(expected.scales.size() + 1);
  });
}

void expect_good(const TestContext& context, double scale, const std::string& when) {
  require(std::isfinite(scale) && scale > 0, [&] {
    return "loss_scale is " + number(scale) + " " + when + "; expected a finite number above 0";
  });
  int exponent = 0;
  require(
      !has_feature(context.plugin.descriptor(), kPowerOfTwo) || std::frexp(scale, &exponent) == 0.5,
      [&] {
        return "loss_scale is " + number(scale) + " " + when +
               "; the feature \"loss_scale:power_of_two\" says a power of two";
      });
}

}  // namespace

namespace {

/// Whole-number options at their least: a window of one step doubles the scale in every one.
void is_finite_at_least_options(const TestContext& context) {
  const ciuic_descriptor& d = context.plugin.descriptor();
  if (has_feature(d, "loss_scale:deepspeed") || has_feature(d, "loss_scale:megatron")) {
    return;  // as published they have no upper bound
  }
  for (const ciuic_option_spec& spec :
       ArrayView<ciuic_option_spec>(context.plugin.descriptor().options)) {
    const bool is_whole = spec.type == CIUIC_TYPE_I64 || spec.type == CIUIC_TYPE_COUNT;
    if (!is_whole || spec.min.i == spec.max.i) {
      continue;
    }
    OptionValues least = context.options;
    least[spec.key] = spec.min.i;
    const TestContext at_least{context.path,        context.plugin,  least,
                               context.seed,        context.scratch, context.patience,
                               context.soak_seconds};
    try {
      context.plugin.validate(TestHost(), least);
    } catch (const Error&) {
      continue;  // the plugin does not serve it
    }
    PolicyBench policy(at_least);
    const std::string when = std::string(" with ") + spec.key + " = " + std::to_string(spec.min.i);
    const Trace trace = run(policy, std::vector<bool>(3000, true), 1);
    for (size_t i = 0; i < trace.scales.size(); ++i) {
      expect_good(context, trace.scales[i], "after update " + std::to_string(i + 1) + when);
    }
  }
}

}  // namespace

void loss_scale_is_finite(const TestContext& context) {
  is_finite_at_least_options(context);
  const std::vector<bool> mixed = script(context.seed, 5000);
  const std::vector<bool> bad(4000, false);
  const std::vector<bool> clean(kLongRun, true);
  for (const std::vector<bool>* steps : {&mixed, &bad, &clean}) {
    PolicyBench policy(context);
    expect_good(context, policy.loss_scale(), "at the start");
    const Trace trace = run(policy, *steps, 1);
    for (size_t i = 0; i < trace.scales.size(); ++i) {
      expect_good(context, trace.scales[i], "after update " + std::to_string(i + 1));
    }
    expect_good(context, policy.loss_scale(), "at the end");
  }
}

void loss_scale_changes_in_update_only(const TestContext& context) {
  PolicyBench policy(context);
  for (const bool is_finite : script(context.seed, 60)) {
    const double scale = policy.loss_scale();
    for (int i = 0; i < 100; ++i) {
      require(policy.loss_scale() == scale, [&] {
        return "loss_scale was " + number(scale) + ", and " + number(policy.loss_scale()) +
               " when read again (" + std::to_string(i + 1) + " times) without an update";
      });
    }
    for (const Module& module : kModules) {
      (void)policy.hooks(module.id);
      (void)policy.dtype_for(module.name, CIUIC_ROLE_VALUE);
    }
    MemoryState state;
    policy.save(state);
    require(policy.loss_scale() == scale, [&] {
      return "loss_scale was " + number(scale) + " and is " + number(policy.loss_scale()) +
             " after hooks, dtype_for and state_save";
    });
    if (policy.update(is_finite)) {
      break;
    }
  }
}

void loss_scale_follows_updates_only(const TestContext& context) {
  const std::vector<bool> steps = script(context.seed + 1, 8000);
  PolicyBench first(context, {0, 4, {}});
  PolicyBench other(context, {3, 4, {}});
  const Trace expected = run(first, steps, 1);
  expect_equal(run(other, steps, 4), expected,
               "rank 3 of 4, which reads the scale four times a step, against rank 0");
}

void loss_scale_is_saved(const TestContext& context) {
  const std::vector<bool> steps = script(context.seed + 2, 6000);
  PolicyBench whole(context);
  const Trace expected = run(whole, steps, 1);
  std::mt19937_64 random(context.seed);
  for (int round = 0; round < 24; ++round) {
    const size_t stop = round < 12 ? static_cast<size_t>(round) : random() % steps.size();
    if (stop >= expected.scales.size()) {
      continue;
    }
    const auto middle = steps.begin() + static_cast<int64_t>(stop);
    PolicyBench before(context);
    (void)run(before, {steps.begin(), middle}, 1);
    MemoryState state;
    before.save(state);
    PolicyBench resumed(context);
    resumed.load(state);
    resumed.go_on_from(before);
    require(resumed.loss_scale() == before.loss_scale(), [&] {
      return "loss_scale is " + number(before.loss_scale()) + " at state_save, after " +
             std::to_string(stop) + " updates, and " + number(resumed.loss_scale()) +
             " after state_load";
    });
    const Trace tail{{expected.scales.begin() + static_cast<int64_t>(stop), expected.scales.end()},
                     expected.gave_up};
    expect_equal(run(resumed, {middle, steps.end()}, 1), tail,
                 "saved and loaded after " + std::to_string(stop) + " updates, counted from there");
  }
}

void loss_scale_falls(const TestContext& context) {
  need_dynamic(context);
  PolicyBench policy(context);
  const double start = policy.loss_scale();
  int bad = 0;
  while (bad < 100 && policy.loss_scale() >= start) {
    ++bad;
    if (policy.update(false)) {
      break;
    }
  }
  require(policy.loss_scale() < start, [&] {
    return "after " + std::to_string(bad) +
           " steps in a row with non-finite gradients the scale is " + number(policy.loss_scale()) +
           ", not below the first, " + number(start) +
           "; a scale that never changes declares the feature \"loss_scale:static\"";
  });
}

void loss_scale_grows(const TestContext& context) {
  need_dynamic(context);
  PolicyBench policy(context);
  const double start = policy.loss_scale();
  for (int bad = 0; bad < 100 && policy.loss_scale() >= start; ++bad) {
    if (policy.update(false)) {
      break;
    }
  }
  const double low = policy.loss_scale();
  int clean = 0;
  while (clean < kLongRun && policy.loss_scale() <= low) {
    ++clean;
    if (const auto error = policy.update(true)) {
      throw CheckFailed(std::string("update of a clean step failed: ") + error->what());
    }
  }
  require(policy.loss_scale() > low, [&] {
    return "after " + std::to_string(clean) + " clean steps the scale is still " + number(low) +
           ": it fell and never grew back";
  });
}

void loss_scale_stays_one(const TestContext& context) {
  const bool is_static = says_static(context);
  if (scales(context) && !is_static) {
    throw NotOffered("the policy scales the loss");
  }
  PolicyBench policy(context);
  const double start = policy.loss_scale();
  const Trace trace = run(policy, script(context.seed, 5000), 1);
  for (size_t i = 0; i < trace.scales.size(); ++i) {
    require(trace.scales[i] == start, [&] {
      return "the scale was " + number(start) + " and is " + number(trace.scales[i]) +
             " after update " + std::to_string(i + 1) + "; a policy that " +
             (is_static ? "declares a static scale keeps it"
                        : "scales declares \"loss_scale:dynamic\"");
    });
  }
  require(!trace.gave_up, [&] { return "update failed in a policy without dynamic scaling"; });
}

}  // namespace ciuic::testing
