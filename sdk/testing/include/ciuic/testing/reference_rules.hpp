// SPDX-License-Identifier: MIT
//
// Published update rules, one element at a time, in float or double: what optimizers are compared
// with, and what the kit's own optimizer computes. The element functions are never inlined, so that
// wherever they are called from, the same inputs give the same bits.
#pragma once

#include <cmath>
#include <cstdint>

namespace ciuic::testing {

/// What ciuic_update says beside the tensors.
struct RuleStep {
  uint64_t update = 1;
  double lr = 1e-2;
  double weight_decay = 1;  // a factor on the rule's own
  double grad_scale = 1;
  uint64_t seed = 77;  // for rounding by chance
};

/// Decoupled Weight Decay Regularization, arXiv:1711.05101, algorithm 2.
struct AdamWRule {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

template <typename Real>
struct AdamWScalars {
  AdamWScalars(const AdamWRule& rule, const RuleStep& s)
      : beta1(static_cast<Real>(rule.beta1)),
        rest1(static_cast<Real>(1 - rule.beta1)),
        beta2(static_cast<Real>(rule.beta2)),
        rest2(static_cast<Real>(1 - rule.beta2)),
        epsilon(static_cast<Real>(rule.epsilon)),
        decay(static_cast<Real>(1 - s.lr * rule.weight_decay * s.weight_decay)),
        step_size(static_cast<Real>(s.lr / (1 - std::pow(rule.beta1, exponent(s))))),
        correction2(static_cast<Real>(std::sqrt(1 - std::pow(rule.beta2, exponent(s))))) {}

  static double exponent(const RuleStep& s) { return static_cast<double>(s.update); }

  Real beta1, rest1, beta2, rest2, epsilon, decay, step_size, correction2;
};

/// `grad` is scaled already.
template <typename Real>
__attribute__((noinline)) void adamw_element(const AdamWScalars<Real>& s, Real grad, Real& value,
                                             Real& mean, Real& square) {
  mean = s.beta1 * mean + s.rest1 * grad;
  square = s.beta2 * square + s.rest2 * grad * grad;
  value = value * s.decay - s.step_size * mean / (std::sqrt(square) / s.correction2 + s.epsilon);
}

/// torch.optim.SGD: decay is part of the gradient; the first momentum is the first gradient.
struct SgdRule {
  double momentum = 0;
  double weight_decay = 0;
  bool is_nesterov = false;
  double dampening = 0;

  void element(const RuleStep& s, double grad, double& value, double& velocity) const {
    double g = grad * s.grad_scale + weight_decay * s.weight_decay * value;
    if (momentum != 0) {
      velocity = momentum * velocity + (s.update == 1 ? 1 : 1 - dampening) * g;
      g = is_nesterov ? g + momentum * velocity : velocity;
    }
    value -= s.lr * g;
  }
};

/// Symbolic Discovery of Optimization Algorithms, arXiv:2302.06675, program 1.
struct LionRule {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;

  /// What the sign is taken of: near 0 a rounding decides.
  [[nodiscard]] double direction(const RuleStep& s, double grad, double mean) const {
    return beta1 * mean + (1 - beta1) * grad * s.grad_scale;
  }
  void element(const RuleStep& s, double grad, double& value, double& mean) const {
    const double c = direction(s, grad, mean);
    const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
    value -= s.lr * (sign + weight_decay * s.weight_decay * value);
    mean = beta2 * mean + (1 - beta2) * grad * s.grad_scale;
  }
};

}  // namespace ciuic::testing
