// SPDX-License-Identifier: MIT
//
// Rules that say by a feature which published one they are: 100 updates against the formula in fp64,
// with the numbers that the plugin's options have. lr, decay and scale change from update to update;
// gradients span eight orders of magnitude, so that epsilon matters.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include <ciuic/testing/features.hpp>

#include "operand.h"
#include "optimizer_host.h"
#include "optimizer_tables.h"

namespace ciuic::testing {
namespace {

constexpr uint64_t kUpdates = 100;
constexpr int64_t kElements = 800;
constexpr double kEps = 1.0 / (1 << 23);  // of fp32
constexpr double kLargestLr = 5e-3;

// An fp32 update errs by one rounding of the value and one of its decay, so by |value| eps; and in
// what it subtracts, at most lr in size, by the roundings of moments that remember 20 updates: 30 lr
// eps. Errors of 100 updates add up at worst.
double bound_for(double value) {
  return static_cast<double>(kUpdates) * kEps * (std::max(1.0, std::abs(value)) + 30 * kLargestLr);
}

RuleStep step_of(uint64_t update) {
  constexpr double kFactors[] = {1, 0.5, 0, 2};
  return {update, 1e-3 * static_cast<double>(1 + update % 5), kFactors[update % 4],
          update % 2 == 0 ? 1.0 : 0.5};
}
double gradient(uint64_t seed, uint64_t update, int64_t i) {
  return arbitrary(seed + update, i) * std::pow(10.0, -static_cast<double>(i % 8));
}

/// An option as the plugin will have it: set by the person, else its default, else `otherwise`.
double option(const TestContext& context, const char* key, double otherwise) {
  const auto set = context.options.find(key);
  if (set != context.options.end()) {
    if (const auto* f = std::get_if<double>(&set->second)) {
      return *f;
    }
    if (const auto* i = std::get_if<int64_t>(&set->second)) {
      return static_cast<double>(*i);
    }
    return std::get<bool>(set->second) ? 1 : 0;
  }
  for (const ciuic_option_spec& spec :
       ArrayView<ciuic_option_spec>(context.plugin.descriptor().options)) {
    if (std::strcmp(spec.key, key) == 0) {
      return spec.type == CIUIC_TYPE_F64 ? spec.def.f : static_cast<double>(spec.def.i);
    }
  }
  return otherwise;
}

/// `element(step, grad, i)` is the reference's value of element i after an update.
template <typename Element>
void compare(const TestContext& context, Element element) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  Operand o(optimizer, kElements, kPlainLayout, context.seed);
  for (const ciuic_state_spec& spec : o.specs) {
    if (spec.dtype.bits < 32) {
      throw NotOffered("as it is set up, it keeps " + std::string(to_view(spec.name)) + " in " +
                       dtype_name(spec.dtype) + ": the rule in other last bits");
    }
  }
  for (uint64_t update = 1; update <= kUpdates; ++update) {
    const RuleStep step = step_of(update);
    for (int64_t i = 0; i < kElements; ++i) {
      o.grad.set(i, gradient(context.seed, update, i));
    }
    std::vector<double> expected;
    for (int64_t i = 0; i < kElements; ++i) {
      expected.push_back(element(step, o.grad.at(i), i));
    }
    o.update(optimizer, step);
    for (int64_t i = 0; i < kElements; ++i) {
      const double want = expected[static_cast<size_t>(i)];
      const double error = std::abs(o.value.at(i) - want);
      require(!std::isfinite(want) || error <= bound_for(want),
              "after update " + std::to_string(update) + ", element " + std::to_string(i) +
                  " (gradients of 1e-" + std::to_string(i % 8) + ") is " +
                  std::to_string(o.value.at(i)) + ", the rule in fp64 gives " +
                  std::to_string(want) + ": " + std::to_string(error / kEps) +
                  " units of 2^-23 apart, allowed " + std::to_string(bound_for(want) / kEps));
    }
  }
}

/// As the operand starts.
std::vector<double> first_values(const TestContext& context) {
  std::vector<double> out;
  for (int64_t i = 0; i < kElements; ++i) {
    out.push_back(static_cast<float>(arbitrary(context.seed, i)));
  }
  return out;
}

void require_feature(const TestContext& context, const char* feature) {
  if (!has_feature(context.plugin.descriptor(), feature)) {
    throw NotOffered(std::string("the plugin does not say that it is ") + feature);
  }
}

void is_adamw(const TestContext& context) {
  require_feature(context, "rule:adamw");
  const AdamWRule rule{option(context, "beta1", 0.9), option(context, "beta2", 0.999),
                       option(context, "epsilon", 1e-8), option(context, "weight_decay", 0)};
  std::vector<double> value = first_values(context);
  std::vector<double> mean(value.size());
  std::vector<double> square(value.size());
  compare(context, [&](const RuleStep& step, double grad, int64_t i) {
    const auto at = static_cast<size_t>(i);
    adamw_element(AdamWScalars<double>(rule, step), grad * step.grad_scale, value[at], mean[at],
                  square[at]);
    return value[at];
  });
}

void is_sgd(const TestContext& context) {
  require_feature(context, "rule:sgd");
  const SgdRule rule{option(context, "momentum", 0), option(context, "weight_decay", 0),
                     option(context, "nesterov", 0) != 0, option(context, "dampening", 0)};
  std::vector<double> value = first_values(context);
  std::vector<double> velocity(value.size());
  compare(context, [&](const RuleStep& step, double grad, int64_t i) {
    const auto at = static_cast<size_t>(i);
    rule.element(step, grad, value[at], velocity[at]);
    return value[at];
  });
}

void is_lion(const TestContext& context) {
  require_feature(context, "rule:lion");
  const LionRule rule{option(context, "beta1", 0.9), option(context, "beta2", 0.99),
                      option(context, "weight_decay", 0)};
  std::vector<double> value = first_values(context);
  std::vector<double> mean(value.size());
  compare(context, [&](const RuleStep& step, double grad, int64_t i) {
    const auto at = static_cast<size_t>(i);
    const double scale = std::abs(mean[at]) + std::abs(grad);
    if (std::abs(rule.direction(step, grad, mean[at])) < 1e-4 * scale) {
      value[at] = std::nan("");  // a rounding decides the sign: no longer compared
    }
    rule.element(step, grad, value[at], mean[at]);
    return value[at];
  });
}

}  // namespace

TestTable optimizer_rule_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_OPTIMIZER;
  return {
      {"optimizer.rule.adamw", 3, kKind, 30,
       "rule:adamw: 100 updates follow AdamW in fp64, bias correction, decay and epsilon included",
       is_adamw},
      {"optimizer.rule.sgd", 3, kKind, 30,
       "rule:sgd: 100 updates follow SGD in fp64, with momentum where there is an option", is_sgd},
      {"optimizer.rule.lion", 3, kKind, 30, "rule:lion: 100 updates follow Lion in fp64", is_lion},
  };
}

}  // namespace ciuic::testing
