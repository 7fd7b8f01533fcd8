// SPDX-License-Identifier: MIT
#include "core/train/parameter_rules.h"

#include <algorithm>
#include <string>

#include <ciuic/name_pattern.hpp>

#include "core/config/joined.h"
#include "core/config/nearest.h"

namespace ciuic::core {
namespace {

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, name); });
}

/// Of several that match, the last counts.
double factor_of(const std::vector<NameFactor>& factors, std::string_view name) {
  const auto last = std::find_if(factors.rbegin(), factors.rend(), [&](const NameFactor& f) {
    return matches_pattern(f.pattern, name);
  });
  return last == factors.rend() ? 1.0 : last->factor;
}

class Check {
 public:
  Check(const RunConfig& config, std::span<const ParameterSpec> parameters,
        std::vector<Problem>& problems)
      : config_(config), parameters_(parameters), problems_(problems) {}

  void pattern(const std::string& key, const std::string& pattern) const {
    const ParameterSpec* tied = nullptr;
    for (const ParameterSpec& p : parameters_) {
      if (!matches_pattern(pattern, p.name)) {
        continue;
      }
      if (!p.is_tied()) {
        return;
      }
      tied = &p;
    }
    std::string message = key + ": " + toml_string(pattern) + " matches no parameter";
    if (tied != nullptr) {
      message += " of its own: " + tied->name + " is tied to " +
                 parameters_[static_cast<size_t>(tied->tied_to)].name + "; name that one";
    } else {
      message += "; near are " + joined(nearest_names(pattern), ", ");
    }
    problems_.push_back(problem_at(config_.where(key), std::move(message)));
  }

  void something_trains() const {
    const bool all_frozen =
        std::all_of(parameters_.begin(), parameters_.end(), [&](const ParameterSpec& p) {
          return p.is_tied() || matches_any(config_.optimizer.frozen, p.name);
        });
    if (all_frozen) {
      problems_.push_back(
          problem_at(config_.where("optimizer.frozen"),
                     "optimizer.frozen: all parameters are frozen, and nothing is left to train"));
    }
  }

 private:
  [[nodiscard]] std::vector<std::string> nearest_names(std::string_view pattern) const {
    constexpr size_t kShown = 3;
    std::vector<std::pair<size_t, std::string>> names;
    for (const ParameterSpec& p : parameters_) {
      if (!p.is_tied()) {
        names.emplace_back(pattern_distance(pattern, p.name), p.name);
      }
    }
    const size_t count = std::min(kShown, names.size());
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> out;
    for (size_t i = 0; i < count; ++i) {
      out.push_back(names[i].second);
    }
    return out;
  }

  const RunConfig& config_;
  std::span<const ParameterSpec> parameters_;
  std::vector<Problem>& problems_;
};

}  // namespace

ParameterRule rule_of(const OptimizerSection& section, std::string_view parameter) {
  return {matches_any(section.frozen, parameter), factor_of(section.weight_decay_scale, parameter),
          factor_of(section.learning_rate_scale, parameter)};
}

void check_parameter_rules(const RunConfig& config, std::span<const ParameterSpec> parameters,
                           std::vector<Problem>& problems) {
  const Check check(config, parameters, problems);
  for (const std::string& pattern : config.optimizer.frozen) {
    check.pattern("optimizer.frozen", pattern);
  }
  for (const NameFactor& f : config.optimizer.weight_decay_scale) {
    check.pattern("optimizer.weight_decay_scale", f.pattern);
  }
  for (const NameFactor& f : config.optimizer.learning_rate_scale) {
    check.pattern("optimizer.learning_rate_scale", f.pattern);
  }
  check.something_trains();
}

}  // namespace ciuic::core
