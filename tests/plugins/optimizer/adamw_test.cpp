// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/testing/numbers.hpp>
#include <ciuic/testing/reference_threads.hpp>

#include "rule_driver.h"

namespace ciuic::testing {
namespace {

using ::testing::HasSubstr;

class AdamW : public ::testing::Test, protected RuleDriver {
 protected:
  AdamW() : RuleDriver("adamw") {}
};

/// The formula in fp64.
struct Reference {
  explicit Reference(const std::vector<float>& start)
      : value(start.begin(), start.end()), m(start.size()), v(start.size()) {}
  void step(const std::vector<float>& grad, const Step& s, double beta1, double beta2,
            double epsilon, double decay) {
    const auto t = static_cast<double>(s.update);
    for (size_t i = 0; i < value.size(); ++i) {
      const double g = grad[i] * s.grad_scale;
      value[i] *= 1 - s.lr * decay;
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double denominator = std::sqrt(v[i]) / std::sqrt(1 - std::pow(beta2, t)) + epsilon;
      value[i] -= s.lr / (1 - std::pow(beta1, t)) * m[i] / denominator;
    }
  }
  std::vector<double> value, m, v;
};

TEST_F(AdamW, DeclaresTwoMoments) {
  const PluginInstance adamw = make();
  const ciuic_param param{};
  ciuic_array specs{};
  adamw.check(adamw.table<ciuic_optimizer_vt>().state_spec(adamw.self(), &param, &specs));
  const ArrayView<ciuic_state_spec> all(specs);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(to_view(all[0].name), "exp_avg");
  EXPECT_EQ(to_view(all[1].name), "exp_avg_sq");
  for (const ciuic_state_spec& spec : all) {
    EXPECT_EQ(dtype_name(spec.dtype), "f32");
    EXPECT_EQ(spec.granule, 1);
    EXPECT_EQ(spec.per_granule, 1);
    EXPECT_EQ(spec.initial, 0.0);
  }
  int64_t granule = 0;
  adamw.check(adamw.table<ciuic_optimizer_vt>().granule(adamw.self(), &param, &granule));
  EXPECT_EQ(granule, 1);
}

// One step by hand: p = 0.99 after decay; m = 0.05, v = 0.0125; m / 0.1 = 0.5; sqrt(v / 0.05) =
// 0.5; p = 0.99 - 0.1.
TEST_F(AdamW, OneStepByHand) {
  Operand o(1);
  o.value = {1};
  o.grad = {0.5};
  update(make(), o, {1, 0.1});
  EXPECT_FLOAT_EQ(o.state_of(0)[0], 0.05F);
  EXPECT_FLOAT_EQ(o.state_of(1)[0], 0.0125F);
  EXPECT_FLOAT_EQ(o.value[0], 0.89F);
}

// Made by torch::optim::AdamW of LibTorch 2.11.0: lr 3e-3, betas (0.9, 0.95), eps 1e-8,
// weight_decay 0.1; gradient of element i at step t: ((7 i + 3 t) mod 11 - 5) / 8, element 6 times
// 1e-4.
TEST_F(AdamW, EqualsTorch) {
  const std::vector<std::vector<float>> torch_values = {
      {1.00269997F, -0.502849996F, 0.246924996F, 3.00209999F, -0.00299999956F, -1.99940002F,
       0.00399910007F, 99.9670029F},
      {1.00320435F, -0.503277063F, 0.244226724F, 3.00323534F, -0.00284120487F, -2.00100517F,
       0.00651711272F, 99.9378891F},
      {1.00155091F, -0.503578603F, 0.244018167F, 3.00207686F, -0.00238098577F, -1.9996624F,
       0.0074235145F, 99.9091797F},
      {1.00154591F, -0.50456804F, 0.244133875F, 3.00235009F, -0.0026068734F, -1.99792075F,
       0.00663763518F, 99.8799667F},
      {1.00175917F, -0.504177213F, 0.243677482F, 3.00288081F, -0.00378790032F, -1.99662077F,
       0.006686938F, 99.8496475F}};
  const std::vector<float> torch_exp_avg = {-0.0242900029F,   -0.0150812576F, 0.0179012474F,
                                            -0.0754787475F,   0.0712300017F,  -0.0332874991F,
                                            -2.91749956e-07F, 0.0200412516F};
  const std::vector<float> torch_exp_avg_sq = {0.0271526556F,   0.0481476821F, 0.0265019573F,
                                               0.0337523855F,   0.0441035926F, 0.02740537F,
                                               3.92574001e-10F, 0.0385351032F};
  // torch fuses some multiply-adds; each step may differ in the last bits, most where moments
  // cancel.
  constexpr float kTolerance = 2e-6F;
  const PluginInstance adamw = make();
  Operand o(8);
  o.value = {1, -0.5, 0.25, 3, 0, -2, 1e-3F, 100};
  for (uint64_t t = 1; t <= 5; ++t) {
    for (size_t i = 0; i < 8; ++i) {
      o.grad[i] = static_cast<float>((i * 7 + t * 3) % 11) * 0.125F - 0.625F;
      o.grad[i] *= i == 6 ? 1e-4F : 1;
    }
    update(adamw, o, {t});
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_NEAR(o.value[i], torch_values[t - 1][i],
                  kTolerance * std::max(0.01F, std::abs(o.value[i])))
          << "step " << t << " element " << i;
    }
  }
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(o.state_of(0)[i], torch_exp_avg[i], kTolerance * std::abs(torch_exp_avg[i]));
    EXPECT_NEAR(o.state_of(1)[i], torch_exp_avg_sq[i], kTolerance * std::abs(torch_exp_avg_sq[i]));
  }
}

TEST_F(AdamW, FollowsTheFormulaInDouble) {
  // 50 fp32 steps against fp64: rounding adds up to a few units in the last place of the larger of
  // value and lr.
  constexpr double kTolerance = 2e-6;
  for (const double beta1 : {0.9, 0.0, 0.3}) {  // torch's lerp has two branches
    const PluginInstance adamw =
        make({{"beta1", beta1}, {"beta2", 0.99}, {"epsilon", 1e-6}, {"weight_decay", 0.05}});
    Operand o(3000);
    o.value = random_values(o.value.size(), 1);
    Reference reference(o.value);
    for (uint64_t t = 1; t <= 50; ++t) {
      o.grad = random_values(o.grad.size(), static_cast<uint32_t>(t) + 1);
      const Step step{t, 1e-3 * static_cast<double>(t), 0.5, 0.25};
      update(adamw, o, step);
      reference.step(o.grad, step, beta1, 0.99, 1e-6, 0.05 * 0.5);
    }
    for (size_t i = 0; i < o.value.size(); ++i) {
      ASSERT_NEAR(o.value[i], reference.value[i],
                  kTolerance * std::max(1.0, std::abs(reference.value[i])));
    }
  }
}

TEST_F(AdamW, BitsDoNotDependOnThreadsOrRanges) {
  constexpr size_t kElements = 1024 * 131 + 7;
  const auto run = [&](uint32_t threads, const std::vector<int64_t>& cuts) {
    const ReferenceThreads service(host.host(), threads);
    host.offer("ciuic.threads", threads == 0 ? nullptr : service.table());
    const PluginInstance adamw = make();
    Operand o(kElements);
    o.copy.resize(kElements);
    o.value = random_values(kElements, 1);
    for (uint64_t t = 1; t <= 3; ++t) {
      o.grad = random_values(kElements, static_cast<uint32_t>(t) + 10);
      int64_t begin = 0;
      for (const int64_t end : cuts) {
        update(adamw, o, {t, 1e-2, 1, 0.7}, begin, end);
        begin = end;
      }
    }
    return o;
  };
  constexpr auto kAll = static_cast<int64_t>(kElements);
  const Operand once = run(0, {kAll});
  const auto expect_equal = [&](const Operand& other) {
    EXPECT_EQ(once.value, other.value);
    EXPECT_EQ(once.state, other.state);
    EXPECT_EQ(once.copy, other.copy);
  };
  for (const uint32_t threads : {1U, 2U, 3U, 7U}) {
    expect_equal(run(threads, {kAll}));
  }
  expect_equal(run(2, {1, 17, 1024, 1025, 99'999, kAll}));
  host.offer("ciuic.threads", nullptr);
}

TEST_F(AdamW, CopyIsRoundedToNearestEven) {
  const PluginInstance adamw = make();
  // Ties of both kinds, neighbours of ties, both zeros, subnormals, the largest, infinities, NaN.
  std::vector<uint32_t> bits = {0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0x00000000,
                                0x80000000, 0x00000001, 0x00008000, 0x00018000, 0x7F7FFFFF,
                                0x7F7F7FFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFF800001,
                                0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF};
  std::mt19937 engine(7);
  while (bits.size() < 5000) {
    bits.push_back(static_cast<uint32_t>(engine()));
  }
  Operand o(bits.size());
  o.copy.resize(bits.size());
  std::memcpy(o.value.data(), bits.data(), bits.size() * sizeof(float));
  const std::vector<float> before = o.value;
  update(adamw, o, {1, 0.0});  // lr 0 and no gradient: values stay
  for (size_t i = 0; i < bits.size(); ++i) {
    if (std::isnan(before[i])) {
      EXPECT_TRUE(std::isnan(bf16_to_float(o.copy[i])));
    } else {
      EXPECT_EQ(o.copy[i], float_to_bf16(before[i])) << std::hex << bits[i];
    }
  }
}

TEST_F(AdamW, FieldBug_B015_MasterKeepsWhatBf16Loses) {
  const PluginInstance adamw = make({{"weight_decay", 0.0}});
  Operand with_master(1);
  with_master.value = {1};
  with_master.copy = {0x3F80};
  Operand pure = with_master;
  pure.has_master = false;
  for (uint64_t t = 1; t <= 100; ++t) {
    for (Operand* o : {&with_master, &pure}) {
      o->grad = {1};
      update(adamw, *o, {t, 6e-4});
    }
  }
  EXPECT_NEAR(with_master.value[0], 0.94, 1e-4);
  EXPECT_EQ(bf16_to_float(with_master.copy[0]), 0.94140625F);
  EXPECT_EQ(bf16_to_float(pure.copy[0]), 1.0F);
}

TEST_F(AdamW, TakesBf16Gradients) {
  const PluginInstance adamw = make();
  Operand wide(2000);
  wide.value = random_values(2000, 3);
  Operand narrow = wide;
  for (size_t i = 0; i < 2000; ++i) {
    narrow.narrow_grad.push_back(float_to_bf16(static_cast<float>(i) * 0.37F - 300));
    wide.grad[i] = bf16_to_float(narrow.narrow_grad[i]);
  }
  update(adamw, wide, {});
  update(adamw, narrow, {});
  EXPECT_EQ(wide.value, narrow.value);
}

TEST_F(AdamW, DecaysWhatNoPatternNames) {
  const PluginInstance adamw =
      make({{"no_decay", std::vector<std::string>{"*norm*", "b?as", "exact"}}});
  const auto decays = [&](const char* name) {
    Operand o(1, name);
    o.value = {1};
    update(adamw, o, {1, 0.5});
    EXPECT_TRUE(o.value[0] == 1.0F || o.value[0] == 0.95F) << name;
    return o.value[0] != 1.0F;
  };
  EXPECT_FALSE(decays("model.norm.weight"));
  EXPECT_FALSE(decays("norm"));
  EXPECT_FALSE(decays("model.layers.0.input_layernorm.weight"));
  EXPECT_FALSE(decays("bias"));
  EXPECT_FALSE(decays("exact"));
  EXPECT_TRUE(decays("exact.weight"));
  EXPECT_TRUE(decays("model.bias"));
  EXPECT_TRUE(decays("biaas"));
  EXPECT_TRUE(decays("lm_head.weight"));
}

TEST_F(AdamW, EveryParameterDecaysByDefault) {
  Operand o(1, "model.norm.weight");
  o.value = {1};
  update(make(), o, {1, 0.5});
  EXPECT_FLOAT_EQ(o.value[0], 0.95F);
}

TEST_F(AdamW, DecayIsTheOptionTimesTheFactor) {
  for (const double factor : {0.0, 0.5, 1.0, 2.0}) {
    Operand o(1);
    o.value = {1};
    update(make(), o, {1, 0.5, factor});
    EXPECT_FLOAT_EQ(o.value[0], static_cast<float>(1 - 0.5 * 0.1 * factor));
  }
}

TEST_F(AdamW, SaysWhatItCannotTake) {
  const PluginInstance adamw = make();
  Operand o(4, "model.w");
  const Error zero = error_of([&] { update(adamw, o, {0}); });
  EXPECT_EQ(zero.code(), CIUIC_INVALID);

  const Tensor wrong(o.grad.data(), kF64, {2});
  const Tensor right(o.value.data(), kF32, {2});
  const std::array<const ciuic_tensor*, 2> state{right.ptr(), right.ptr()};
  ciuic_update u{};
  u.struct_size = sizeof(u);
  u.param = &o.param;
  u.num_elements = 2;
  u.update = 1;
  u.grad = wrong.ptr();
  u.value = right.ptr();
  u.state = state.data();
  u.num_state = 2;
  const Error dtype = error_of([&] {
    adamw.check(
        adamw.table<ciuic_optimizer_vt>().update(adamw.self(), {&u, 1, sizeof(u)}, nullptr));
  });
  EXPECT_EQ(dtype.code(), CIUIC_UNIMPLEMENTED);
  EXPECT_STREQ(dtype.what(),
               "optimizer adamw: model.w: got a tensor of f64, expected f32, bf16 or f16");
}

TEST_F(AdamW, RefusesABetaOfOne) {
  const Error e = error_of([&] { plugin.validate(host, {{"beta2", 1.0}}); });
  EXPECT_EQ(e.code(), CIUIC_INVALID);
  EXPECT_THAT(e.what(), HasSubstr("beta2"));
}

/// fp16 policy: fp16 values and gradients (or fp32 ones), fp32 masters.
TEST_F(AdamW, TakesFp16ValuesAndGradients) {
  const PluginInstance adamw = make();
  Operand wide(2000);
  wide.value = random_values(2000, 3);
  Operand narrow = wide;
  narrow.copy.resize(2000);
  narrow.copy_type = narrow.narrow_grad_type = kF16;
  for (size_t i = 0; i < 2000; ++i) {
    narrow.narrow_grad.push_back(float_to_f16(static_cast<float>(i) * 0.37F - 300));
    wide.grad[i] = f16_to_float(narrow.narrow_grad[i]);
  }
  Operand fp32_gradients = wide;
  fp32_gradients.copy.resize(2000);
  fp32_gradients.copy_type = kF16;
  for (uint64_t t = 1; t <= 3; ++t) {
    for (Operand* o : {&wide, &narrow, &fp32_gradients}) {
      update(adamw, *o, {t, 1e-2, 1, 1.0 / 1024});
    }
  }
  EXPECT_EQ(wide.value, narrow.value);
  EXPECT_EQ(wide.value, fp32_gradients.value);
  for (size_t i = 0; i < 2000; ++i) {
    EXPECT_EQ(narrow.copy[i], float_to_f16(narrow.value[i])) << i;
    EXPECT_EQ(fp32_gradients.copy[i], narrow.copy[i]) << i;
  }
}

std::vector<float> bf16_state(const Operand& o, size_t s) {
  std::vector<float> out;
  for (size_t i = 0; i < o.value.size(); ++i) {
    uint16_t code = 0;
    std::memcpy(&code, o.state.at(s).data() + 2 * i, 2);
    out.push_back(bf16_to_float(code));
  }
  return out;
}

TEST_F(AdamW, Bf16MomentsToNearestAreTheFp32OnesRounded) {
  const PluginInstance wide = make();
  const PluginInstance narrow =
      make({{"moments", std::string("bf16")}, {"moment_rounding", std::string("nearest")}});
  Operand a(3000);
  a.value = random_values(3000, 1);
  a.grad = random_values(3000, 2);
  Operand b = a;
  update(wide, a, {1});
  update(narrow, b, {1});
  EXPECT_EQ(a.value, b.value);  // the step itself takes the moments before they are rounded
  for (size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(dtype_name(b.state_type[s]), "bf16");
    const std::vector<float> got = bf16_state(b, s);
    for (size_t i = 0; i < 3000; ++i) {
      ASSERT_EQ(float_to_bf16(got[i]), float_to_bf16(a.state_of(s)[i])) << s << " " << i;
    }
  }
}

/// The mean over seeds is the fp32 moment: its error falls with their root.
TEST_F(AdamW, Bf16MomentsByChanceAreUnbiased) {
  constexpr int kSeeds = 4000;
  constexpr size_t kElements = 64;
  const PluginInstance narrow = make({{"moments", std::string("bf16")}});
  Operand exact(kElements);
  exact.grad = random_values(kElements, 2);
  update(make(), exact, {1});
  std::array<std::vector<double>, 2> sums{std::vector<double>(kElements),
                                          std::vector<double>(kElements)};
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Operand o(kElements);
    o.grad = exact.grad;
    update(narrow, o, {1, 3e-3, 1, 1, seed});
    for (size_t s = 0; s < 2; ++s) {
      const std::vector<float> got = bf16_state(o, s);
      for (size_t i = 0; i < kElements; ++i) {
        sums[s][i] += got[i];
      }
    }
  }
  // A rounding's deviation is at most half a step of bf16, 2^-8 of the number; five deviations of
  // the mean of 4000.
  const double tolerance = 5.0 / 256 / std::sqrt(kSeeds);
  for (size_t s = 0; s < 2; ++s) {
    for (size_t i = 0; i < kElements; ++i) {
      const double want = exact.state_of(s)[i];
      EXPECT_NEAR(sums[s][i] / kSeeds, want, tolerance * std::abs(want)) << s << " " << i;
    }
  }
}

/// beta2 0.999 and a constant gradient: to nearest, the second moment stands still half way.
TEST_F(AdamW, ChanceFollowsWhatNearestLoses) {
  const auto last_square = [&](const char* rounding) {
    const PluginInstance adamw = make({{"moments", std::string("bf16")},
                                       {"moment_rounding", std::string(rounding)},
                                       {"beta2", 0.999}});
    Operand o(256);
    std::fill(o.grad.begin(), o.grad.end(), 1.0F);
    for (uint64_t t = 1; t <= 5000; ++t) {
      update(adamw, o, {t, 1e-5});
    }
    const std::vector<float> square = bf16_state(o, 1);
    double sum = 0;
    for (const float x : square) {
      sum += x;
    }
    return sum / 256;
  };
  EXPECT_LT(last_square("nearest"), 0.5);
  EXPECT_NEAR(last_square("stochastic"), 1 - std::pow(0.999, 5000), 0.01);
}

TEST_F(AdamW, ChanceDependsOnSeedUpdateAndNameOnly) {
  const PluginInstance adamw = make({{"moments", std::string("bf16")}});
  const auto run = [&](const char* name, uint64_t seed, uint64_t at, bool in_pieces) {
    Operand o(3000, name);
    o.grad = random_values(3000, 2);
    for (const auto& [begin, end] :
         in_pieces ? std::vector<std::pair<int64_t, int64_t>>{{0, 7}, {7, 1999}, {1999, -1}}
                   : std::vector<std::pair<int64_t, int64_t>>{{0, -1}}) {
      update(adamw, o, {at, 1e-3, 1, 1, seed}, begin, end);
    }
    return o.state;
  };
  const auto reference = run("w", 1, 5, false);
  EXPECT_EQ(run("w", 1, 5, true), reference);
  EXPECT_NE(run("w", 2, 5, false), reference);
  EXPECT_NE(run("w", 1, 6, false), reference);
  EXPECT_NE(run("v", 1, 5, false), reference);
}

}  // namespace
}  // namespace ciuic::testing
