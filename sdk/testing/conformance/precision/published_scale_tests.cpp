// SPDX-License-Identifier: MIT
//
// Policies that name a published automaton are compared with it, update for update.
#include <memory>
#include <random>
#include <string>

#include <ciuic/testing/loss_scale_rules.hpp>

#include "policy_tests.hpp"

namespace ciuic::testing {
namespace {

/// The value that the instance will see, or `published` when the plugin has no such option.
double value_of(const TestContext& context, const char* key, double published) {
  const ciuic_option_spec* spec = spec_of(context.plugin.descriptor(), key);
  if (spec == nullptr) {
    return published;
  }
  const auto given = context.options.find(key);
  if (given == context.options.end()) {
    return spec->type == CIUIC_TYPE_F64 ? spec->def.f : static_cast<double>(spec->def.i);
  }
  const auto* number = std::get_if<double>(&given->second);
  const auto* whole = std::get_if<int64_t>(&given->second);
  return number != nullptr ? *number : (whole != nullptr ? static_cast<double>(*whole) : published);
}

LossScaleSettings settings_of(const TestContext& context, const LossScaleSettings& published) {
  const double initial = value_of(context, "initial_scale", 0);
  return {initial != 0 ? initial : published.initial_scale,
          static_cast<int64_t>(value_of(context, "window", static_cast<double>(published.window))),
          static_cast<int64_t>(
              value_of(context, "hysteresis", static_cast<double>(published.hysteresis))),
          value_of(context, "minimum_scale", published.minimum_scale)};
}

/// The published rule that the instance follows: of several, the one that the option "scaler" names.
std::unique_ptr<LossScaleRule> rule_of(const TestContext& context) {
  const ciuic_descriptor& descriptor = context.plugin.descriptor();
  const std::string scaler = scaler_of(context);
  const auto names = [&](const char* rule) {
    return has_feature(descriptor, (std::string("loss_scale:") + rule).c_str()) &&
           (scaler.empty() || scaler == rule);
  };
  if (names("deepspeed")) {
    return std::make_unique<DeepSpeedLossScale>(
        settings_of(context, DeepSpeedLossScale::kDefaults));
  }
  if (names("megatron")) {
    return std::make_unique<MegatronLossScale>(settings_of(context, MegatronLossScale::kDefaults));
  }
  throw NotOffered(
      "no feature \"loss_scale:deepspeed\" or \"loss_scale:megatron\", or the option "
      "\"scaler\" has another value");
}

/// O: non-finite, G: clean. Both have bursts longer than any hysteresis, stretches of a window, one
/// less and one more, and a fall to the minimum.
std::string script(uint64_t seed, int64_t window) {
  std::mt19937_64 random(seed);
  std::string out = "OOOGGGG";
  for (int round = 0; round < 12; ++round) {
    out += std::string(1 + random() % 5, 'O');
    const auto stretch = static_cast<size_t>(std::max<int64_t>(window, 1));
    out += std::string(stretch - 1 + random() % 3, 'G');
    out += std::string(random() % 2, 'O');
    out += std::string(random() % (2 * stretch), 'G');
  }
  return out + std::string(80, 'O');
}

void compare(const TestContext& context) {
  const std::unique_ptr<LossScaleRule> rule = rule_of(context);
  PolicyBench policy(context);
  const auto window = static_cast<int64_t>(value_of(context, "window", 1000));
  const std::string steps = script(context.seed, window);
  require(policy.loss_scale() == rule->scale(),
          "the first scale is " + std::to_string(policy.loss_scale()) +
              ", published: " + std::to_string(rule->scale()));
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string where = "after " + std::to_string(i + 1) + " updates, the last of them " +
                              steps.substr(i < 12 ? 0 : i - 12, i < 12 ? i + 1 : 13) +
                              " (O: non-finite, G: clean)";
    const bool goes_on = rule->update(steps[i] == 'G');
    const auto error = policy.update(steps[i] == 'G');
    require(policy.loss_scale() == rule->scale(),
            where + " the scale is " + std::to_string(policy.loss_scale()) +
                ", published: " + std::to_string(rule->scale()));
    require(!goes_on || !error, where + " update failed: " + (error ? error->what() : ""));
    if (!goes_on || error) {
      return;  // the published rule ends with an error here; the policy may, too
    }
  }
}

/// With a window of 3 and hysteresis 2, where the plugin has these options: the vector that is
/// printed in DeepSpeed's own tests' terms.
void compare_short_window(const TestContext& context) {
  if (spec_of(context.plugin.descriptor(), "window") == nullptr ||
      spec_of(context.plugin.descriptor(), "hysteresis") == nullptr) {
    return;
  }
  OptionValues options = context.options;
  options["window"] = int64_t{3};
  options["hysteresis"] = int64_t{2};
  const TestContext three{context.path, context.plugin,  options,
                          context.seed, context.scratch, context.patience};
  compare(three);
  if (dynamic_cast<DeepSpeedLossScale*>(rule_of(three).get()) != nullptr &&
      settings_of(three, DeepSpeedLossScale::kDefaults).initial_scale == 65536) {
    PolicyBench policy(three);
    const double expected[] = {65536, 32768, 16384, 16384, 16384, 16384, 32768};
    for (size_t i = 0; i < 7; ++i) {
      (void)policy.update(i >= 3);
      require(policy.loss_scale() == expected[i],
              "window 3, hysteresis 2, updates O O O G G G G: after update " +
                  std::to_string(i + 1) + " the scale is " + std::to_string(policy.loss_scale()) +
                  ", expected 65536 32768 16384 16384 16384 16384 32768");
    }
  }
}

}  // namespace

void loss_scale_is_as_published(const TestContext& context) {
  compare(context);
  compare_short_window(context);
}

}  // namespace ciuic::testing
