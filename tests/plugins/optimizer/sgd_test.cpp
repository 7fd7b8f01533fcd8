// SPDX-License-Identifier: MIT
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rule_driver.h"

namespace ciuic::testing {
namespace {

using ::testing::HasSubstr;

class Sgd : public ::testing::Test, protected RuleDriver {
 protected:
  Sgd() : RuleDriver("sgd") {}
};

/// torch.optim.SGD in fp64, from its documentation.
struct SgdReference {
  double momentum, dampening, weight_decay;
  bool nesterov;
  std::vector<double> value, buffer;

  void step(const std::vector<float>& grad, const Step& s) {
    buffer.resize(value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      double g = grad[i] * s.grad_scale + weight_decay * s.weight_decay * value[i];
      if (momentum != 0) {
        buffer[i] = s.update == 1 ? g : momentum * buffer[i] + (1 - dampening) * g;
        g = nesterov ? g + momentum * buffer[i] : buffer[i];
      }
      value[i] -= s.lr * g;
    }
  }
};

TEST_F(Sgd, FollowsTheFormulaInDouble) {
  // Each of 50 fp32 steps errs by a rounding of the value, and by lr times those of a momentum that
  // remembers ten gradients: below one unit in the last place of the larger of value and 1 a step.
  constexpr double kTolerance = 50.0 / (1 << 23);
  struct Case {
    double momentum, dampening, weight_decay;
    bool nesterov;
  };
  for (const Case& c : {Case{0, 0, 0, false}, Case{0, 0, 0.01, false}, Case{0.9, 0, 0, false},
                        Case{0.9, 0, 0.01, true}, Case{0.9, 0.5, 0.01, false}}) {
    const PluginInstance sgd = make({{"momentum", c.momentum},
                                     {"dampening", c.dampening},
                                     {"weight_decay", c.weight_decay},
                                     {"nesterov", c.nesterov}});
    Operand o(3000);
    o.value = random_values(3000, 1);
    SgdReference reference{c.momentum, c.dampening, c.weight_decay, c.nesterov, {}, {}};
    reference.value.assign(o.value.begin(), o.value.end());
    for (uint64_t t = 1; t <= 50; ++t) {
      o.grad = random_values(3000, static_cast<uint32_t>(t) + 1);
      const Step step{t, 1e-3 * static_cast<double>(1 + t % 5), 0.5, 0.25};
      update(sgd, o, step);
      reference.step(o.grad, step);
    }
    for (size_t i = 0; i < 3000; ++i) {
      ASSERT_NEAR(o.value[i], reference.value[i],
                  kTolerance * std::max(1.0, std::abs(reference.value[i])))
          << "momentum " << c.momentum << " element " << i;
    }
  }
}

TEST_F(Sgd, KeepsStateOnlyForMomentum) {
  for (const double momentum : {0.0, 0.9}) {
    Operand o(4);
    prepare(make({{"momentum", momentum}}), o);
    EXPECT_EQ(o.state.size(), momentum == 0 ? 0U : 1U);
  }
}

/// Clipping comes after unscaling: the scale of 1024 and the norm of 5 arrive in one factor.
TEST_F(Sgd, FieldBug_B011_ClipsAfterUnscaling) {
  Operand o(2);
  o.grad = {3 * 1024, 4 * 1024};
  const double true_norm = 5;
  update(make({{"momentum", 0.0}}), o, {1, 1.0, 1, 1.0 / 1024 / true_norm});
  EXPECT_FLOAT_EQ(o.value[0], -0.6F);
  EXPECT_FLOAT_EQ(o.value[1], -0.8F);
}

TEST_F(Sgd, RefusesNesterovWithoutMomentum) {
  const Error e = error_of([&] { plugin.validate(host, {{"nesterov", true}, {"momentum", 0.0}}); });
  EXPECT_EQ(e.code(), CIUIC_INVALID);
  EXPECT_THAT(e.what(), HasSubstr("momentum"));
  const Error dampened = error_of([&] {
    plugin.validate(host, {{"nesterov", true}, {"dampening", 0.1}});
  });
  EXPECT_EQ(dampened.code(), CIUIC_INVALID);
  const Error idle = error_of([&] {
    plugin.validate(host, {{"momentum", 0.0}, {"dampening", 0.1}});
  });
  EXPECT_EQ(idle.code(), CIUIC_INVALID);
  EXPECT_THAT(idle.what(), HasSubstr("no effect"));
}

}  // namespace
}  // namespace ciuic::testing
