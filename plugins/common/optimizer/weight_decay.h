// SPDX-License-Identifier: MIT
//
// The options weight_decay and no_decay, which all rules of the tree have.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <ciuic/name_pattern.hpp>
#include <ciuic/optimizer.hpp>

namespace ciuic::plugins::optimizer {

class WeightDecay {
 public:
  explicit WeightDecay(const Options& options)
      : weight_decay_(options.f64("weight_decay")), no_decay_(options.strings("no_decay")) {}

  /// What an update's parameter decays by: the option times the update's factor.
  [[nodiscard]] double of(const ciuic_update& u) const {
    const bool is_exempt =
        std::any_of(no_decay_.begin(), no_decay_.end(), [&](const std::string& pattern) {
          return matches_pattern(pattern, to_view(u.param->name));
        });
    return is_exempt ? 0.0 : weight_decay_ * u.weight_decay;
  }

  static ciuic_option_spec no_decay_option(uint32_t flags) {
    return option_strings("no_decay",
                          "Parameters without weight decay: patterns with * and ? over full names, "
                          "for example \"*norm*\"; by default all decay, as in torch",
                          flags | CIUIC_OPTION_PARAMETER_NAMES);
  }

 private:
  double weight_decay_;
  std::vector<std::string> no_decay_;
};

}  // namespace ciuic::plugins::optimizer
