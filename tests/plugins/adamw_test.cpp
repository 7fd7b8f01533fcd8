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

#include "plugins.h"

namespace ciuic::testing {
namespace {

using ::testing::HasSubstr;

/// One parameter with its gradient and state, as vectors that a test can look at.
struct Operand {
  explicit Operand(size_t n, const char* name = "w")
      : value(n), grad(n), exp_avg(n), exp_avg_sq(n) {
    param.struct_size = sizeof(param);
    param.name = to_str(name);
    param.weight_decay = 1;
    param.lr_scale = 1;
  }

  std::vector<float> value, grad, exp_avg, exp_avg_sq;
  std::vector<uint16_t> bf16;       // the low-precision copy, if any
  std::vector<uint16_t> grad_bf16;  // in place of grad, if any
  bool is_pure_bf16 = false;        // no master
  ciuic_param param{};
};

struct Step {
  uint64_t update = 1;
  double lr = 3e-3;
  double weight_decay = 1;
  double grad_scale = 1;
};

class AdamW : public ::testing::Test {
 protected:
  PluginInstance make(OptionValues options = {}) const {
    return plugin.create(host, std::move(options));
  }

  /// Elements [begin, end) of an operand.
  static void update(const PluginInstance& adamw, Operand& o, const Step& step, int64_t begin = 0,
                     int64_t end = -1) {
    const int64_t n = (end < 0 ? static_cast<int64_t>(o.value.size()) : end) - begin;
    const auto view = [&](auto& values, ciuic_dtype dtype) {
      return Tensor(values.data() + begin, dtype, {n});
    };
    const Tensor grad = o.grad_bf16.empty() ? view(o.grad, kF32) : view(o.grad_bf16, kBF16);
    const Tensor master = view(o.value, kF32);
    const Tensor value = o.bf16.empty() ? master : view(o.bf16, kBF16);
    const Tensor exp_avg = view(o.exp_avg, kF32);
    const Tensor exp_avg_sq = view(o.exp_avg_sq, kF32);
    const std::array<const ciuic_tensor*, 2> state{exp_avg.ptr(), exp_avg_sq.ptr()};
    ciuic_update u{};
    u.struct_size = sizeof(u);
    u.param = &o.param;
    u.begin = begin;
    u.num_elements = n;
    u.update = step.update;
    u.lr = step.lr;
    u.weight_decay = step.weight_decay;
    u.grad_scale = step.grad_scale;
    u.grad = grad.ptr();
    u.master = o.bf16.empty() || o.is_pure_bf16 ? nullptr : master.ptr();
    u.value = value.ptr();
    u.state = state.data();
    u.num_state = 2;
    adamw.check(
        adamw.table<ciuic_optimizer_vt>().update(adamw.self(), {&u, 1, sizeof(u)}, nullptr));
  }

  TestHost host;
  LoadedPlugin plugin = load_plugin("adamw");
};

std::vector<float> random_values(size_t n, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) {
    x = normal(engine);
  }
  return out;
}

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
  EXPECT_FLOAT_EQ(o.exp_avg[0], 0.05F);
  EXPECT_FLOAT_EQ(o.exp_avg_sq[0], 0.0125F);
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
    EXPECT_NEAR(o.exp_avg[i], torch_exp_avg[i], kTolerance * std::abs(torch_exp_avg[i]));
    EXPECT_NEAR(o.exp_avg_sq[i], torch_exp_avg_sq[i], kTolerance * std::abs(torch_exp_avg_sq[i]));
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
    o.bf16.resize(kElements);
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
    EXPECT_EQ(once.exp_avg, other.exp_avg);
    EXPECT_EQ(once.exp_avg_sq, other.exp_avg_sq);
    EXPECT_EQ(once.bf16, other.bf16);
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
  o.bf16.resize(bits.size());
  std::memcpy(o.value.data(), bits.data(), bits.size() * sizeof(float));
  const std::vector<float> before = o.value;
  update(adamw, o, {1, 0.0});  // lr 0 and no gradient: values stay
  for (size_t i = 0; i < bits.size(); ++i) {
    if (std::isnan(before[i])) {
      EXPECT_TRUE(std::isnan(bf16_to_float(o.bf16[i])));
    } else {
      EXPECT_EQ(o.bf16[i], float_to_bf16(before[i])) << std::hex << bits[i];
    }
  }
}

TEST_F(AdamW, FieldBug_B015_MasterKeepsWhatBf16Loses) {
  const PluginInstance adamw = make({{"weight_decay", 0.0}});
  Operand with_master(1);
  with_master.value = {1};
  with_master.bf16 = {0x3F80};
  Operand pure = with_master;
  pure.is_pure_bf16 = true;
  for (uint64_t t = 1; t <= 100; ++t) {
    for (Operand* o : {&with_master, &pure}) {
      o->grad = {1};
      update(adamw, *o, {t, 6e-4});
    }
  }
  EXPECT_NEAR(with_master.value[0], 0.94, 1e-4);
  EXPECT_EQ(bf16_to_float(with_master.bf16[0]), 0.94140625F);
  EXPECT_EQ(bf16_to_float(pure.bf16[0]), 1.0F);
}

TEST_F(AdamW, TakesBf16Gradients) {
  const PluginInstance adamw = make();
  Operand wide(2000);
  wide.value = random_values(2000, 3);
  Operand narrow = wide;
  for (size_t i = 0; i < 2000; ++i) {
    narrow.grad_bf16.push_back(float_to_bf16(static_cast<float>(i) * 0.37F - 300));
    wide.grad[i] = bf16_to_float(narrow.grad_bf16[i]);
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
  EXPECT_STREQ(dtype.what(), "optimizer adamw: model.w: got a tensor of f64, expected f32");
}

TEST_F(AdamW, RefusesABetaOfOne) {
  const Error e = error_of([&] { plugin.validate(host, {{"beta2", 1.0}}); });
  EXPECT_EQ(e.code(), CIUIC_INVALID);
  EXPECT_THAT(e.what(), HasSubstr("beta2"));
}

}  // namespace
}  // namespace ciuic::testing
