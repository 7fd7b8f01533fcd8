// SPDX-License-Identifier: MIT
//
// Small models and whole steps for tests of one fact.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <ciuic/testing/step_driver.hpp>

#include "net_training.h"

namespace ciuic::testing {

/// Four units of sizes that fit nothing.
inline Model small_model() {
  return {{"embed.weight", {5, 3}, 0},    {"layers.0.norm.weight", {7}, 1},
          {"layers.0.weight", {3, 5}, 1}, {"layers.1.norm.weight", {7}, 2},
          {"layers.1.weight", {3, 5}, 2}, {"head.weight", {5, 3}, 3}};
}

/// An instance with first values on every rank, and a body that drives it.
inline void drive(const TestContext& context, RankGroup& ranks, const Model& model,
                  const std::function<void(StepDriver&)>& body, MemoryState* end = nullptr) {
  MemoryState start;
  put_first_values(start, model);
  run_ranks(ranks, [&](Rank& rank) {
    ReferenceAdamW optimizer(rank.host.host());
    StepDriver driver(context, rank, model, &optimizer);
    driver.load(start);
    body(driver);
    if (end != nullptr) {
      driver.save(*end);
    }
  });
}
inline void drive(const TestContext& context, int world, const Model& model,
                  const std::function<void(StepDriver&)>& body, MemoryState* end = nullptr) {
  RankGroup ranks(world);
  drive(context, ranks, model, body, end);
}

/// `got` within `bound` of `expected`, relative to it.
inline void require_near(double got, double expected, double bound, const std::string& what) {
  require(std::abs(got - expected) <= bound * std::max(std::abs(expected), 1e-30),
          what + ": got " + std::to_string(got) + ", expected " + std::to_string(expected));
}

/// A norm of few fp32 gradients: summed in fp32 at worst.
constexpr double kNormBound = 1e-5;

inline void require_norm(StepDriver& driver, double expected, const std::string& when) {
  const ciuic_grad_stats s = driver.stats();
  require(s.non_finite == 0, when + ": grad_stats counts " + std::to_string(s.non_finite) +
                                 " non-finite elements where all are finite");
  require_near(s.norm, expected, kNormBound, when + ": the L2 norm of the gradient");
}

/// One AdamW update of `model` from first values, all gradients known: what a state must hold.
inline void require_updated(const MemoryState& state, const Model& model,
                            const std::vector<GradientOf>& gradient_of_update,
                            const std::string& when) {
  for (uint64_t id = 0; id < model.size(); ++id) {
    const ModelParam& p = model[id];
    for (int64_t i = 0; i < p.num_elements() && p.tied_to < 0; ++i) {
      auto value = static_cast<float>(first_value(id, i));
      float mean = 0;
      float square = 0;
      for (uint64_t update = 1; update <= gradient_of_update.size() && p.is_trained(); ++update) {
        RuleStep s = rule_step(update);
        s.lr *= p.lr_scale;
        s.weight_decay *= p.weight_decay;
        const double g = gradient_of_update[update - 1](id, i) * s.grad_scale;
        adamw_element(AdamWScalars<float>(AdamWRule{}, s), static_cast<float>(g), value, mean,
                      square);
      }
      const double got = stored(state, p).at(i);
      require(got == static_cast<double>(value),
              when + ": " + p.name + "[" + std::to_string(i) + "]: got " + std::to_string(got) +
                  ", expected " + std::to_string(value) + ", difference " +
                  std::to_string(got - static_cast<double>(value)));
    }
  }
}

/// A whole number that differs from element to element: sums are exact, also in bf16.
inline double whole_gradient(uint64_t param, int64_t i) {
  return static_cast<double>((static_cast<int64_t>(param) * 3 + i) % 7) - 2;
}

}  // namespace ciuic::testing
