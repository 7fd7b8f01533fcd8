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

class PatternCheck {
 public:
  PatternCheck(std::span<const ParameterSpec> parameters, std::vector<Problem>& problems)
      : parameters_(parameters), problems_(problems) {}

  void operator()(const std::string& key, const Where& where, const std::string& pattern) const {
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
    problems_.push_back(problem_at(where, std::move(message)));
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

  std::span<const ParameterSpec> parameters_;
  std::vector<Problem>& problems_;
};

void check_something_trains(const RunConfig& config, std::span<const ParameterSpec> parameters,
                            std::vector<Problem>& problems) {
  const bool all_frozen =
      std::all_of(parameters.begin(), parameters.end(), [&](const ParameterSpec& p) {
        return p.is_tied() || matches_any(config.optimizer.frozen, p.name);
      });
  if (all_frozen) {
    problems.push_back(
        problem_at(config.where("optimizer.frozen"),
                   "optimizer.frozen: all parameters are frozen, and nothing is left to train"));
  }
}

}  // namespace

ParameterRule rule_of(const OptimizerSection& section, std::string_view parameter) {
  return {matches_any(section.frozen, parameter), factor_of(section.weight_decay_scale, parameter),
          factor_of(section.learning_rate_scale, parameter)};
}

void check_parameter_rules(const RunConfig& config, std::span<const ParameterSpec> parameters,
                           std::vector<Problem>& problems) {
  const PatternCheck check(parameters, problems);
  const auto check_lists = [&](const std::string& key, const auto& list, const auto& pattern_of) {
    for (const auto& entry : list) {
      check(key, config.where(key), pattern_of(entry));
    }
  };
  const auto itself = [](const std::string& pattern) { return pattern; };
  const auto of_factor = [](const NameFactor& f) { return f.pattern; };
  check_lists("optimizer.frozen", config.optimizer.frozen, itself);
  check_lists("optimizer.gradient_norms", config.optimizer.gradient_norms, itself);
  check_lists("optimizer.weight_decay_scale", config.optimizer.weight_decay_scale, of_factor);
  check_lists("optimizer.learning_rate_scale", config.optimizer.learning_rate_scale, of_factor);
  check_something_trains(config, parameters, problems);
}

void check_name_patterns(const PluginOptions& options, std::span<const ParameterSpec> parameters,
                         std::vector<Problem>& problems) {
  const PatternCheck check(parameters, problems);
  for (const PluginOptions::NamePatterns& given : options.name_patterns()) {
    for (const std::string& pattern : given.patterns) {
      check(given.key, given.where, pattern);
    }
  }
}

}  // namespace ciuic::core
