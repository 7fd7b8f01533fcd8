// SPDX-License-Identifier: MIT
//
// Loss scales of the precision plugins: fp16's two published automata, their state, and what other
// policies must not do. Vectors: DeepSpeed's runtime/fp16/loss_scaler.py, Megatron's
// core/optimizer/grad_scaler.py.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/testing/memory_state.hpp>

#include "tests/plugins/plugins.h"

namespace ciuic::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Policy {
 public:
  Policy(const char* name, const OptionValues& options = {})
      : plugin_(load_plugin(name)), instance_(plugin_.create(host_, options)) {}

  double scale() const { return table().loss_scale(instance_.self()); }
  void step(bool is_finite) {
    ciuic_precision_update update{};
    update.struct_size = sizeof(update);
    update.step = ++steps_;
    update.update = applied_ += is_finite ? 1 : 0;
    update.non_finite = is_finite ? 0 : 3;
    instance_.check(table().update(instance_.self(), &update));
  }
  /// O: a step with non-finite gradients, G: a clean one. The scale after each.
  std::vector<double> scales(const std::string& steps) {
    std::vector<double> out;
    for (const char c : steps) {
      step(c == 'G');
      out.push_back(scale());
    }
    return out;
  }
  const PluginInstance& instance() const { return instance_; }
  const TestHost& host() const { return host_; }

 private:
  const ciuic_precision_vt& table() const { return instance_.table<ciuic_precision_vt>(); }

  TestHost host_;
  LoadedPlugin plugin_;
  PluginInstance instance_;
  uint64_t steps_ = 0;
  uint64_t applied_ = 0;
};

TEST(Fp16, FollowsDeepSpeed) {
  Policy fp16("fp16", {{"window", int64_t{3}}});
  EXPECT_EQ(fp16.scale(), 65536);
  EXPECT_THAT(fp16.scales("OOOGGGG"), ElementsAre(65536, 32768, 16384, 16384, 16384, 16384, 32768));
}

TEST(Fp16, GrowsAtTheThousandAndFirstCleanStep) {
  Policy deepspeed("fp16");
  Policy megatron("fp16", {{"scaler", std::string("megatron")}});
  EXPECT_EQ(megatron.scale(), 4294967296.0);
  (void)deepspeed.scales(std::string(1000, 'G'));
  (void)megatron.scales(std::string(999, 'G'));
  EXPECT_EQ(deepspeed.scale(), 65536);
  EXPECT_EQ(megatron.scale(), 4294967296.0);
  deepspeed.step(true);
  megatron.step(true);
  EXPECT_EQ(deepspeed.scale(), 131072);
  EXPECT_EQ(megatron.scale(), 8589934592.0);
}

TEST(Fp16, MegatronSpendsItsHysteresisAndStaysAtTheMinimum) {
  Policy fp16("fp16", {{"scaler", std::string("megatron")},
                       {"window", int64_t{2}},
                       {"initial_scale", 8.0},
                       {"minimum_scale", 2.0}});
  EXPECT_THAT(fp16.scales("OOOOOGGG"), ElementsAre(8, 4, 2, 2, 2, 2, 4, 4));
}

TEST(Fp16, AnExhaustedScaleEndsTheRunWithARemedy) {
  Policy fp16("fp16", {{"initial_scale", 2.0}});
  EXPECT_THAT(fp16.scales("OO"), ElementsAre(2, 1));
  const Error error = error_of([&] { fp16.step(false); });
  EXPECT_EQ(error.code(), CIUIC_ABORTED);
  EXPECT_THAT(error.what(), HasSubstr("earlier checkpoint"));
  EXPECT_THAT(error.what(), HasSubstr("bf16"));
}

TEST(Fp16, AStaticScaleStays) {
  Policy fp16("fp16", {{"scaler", std::string("static")}, {"initial_scale", 1024.0}});
  EXPECT_THAT(fp16.scales("OOGGO"), ElementsAre(1024, 1024, 1024, 1024, 1024));
}

TEST(Fp16, RefusesAScaleThatRounds) {
  for (const OptionValues& options :
       {OptionValues{{"initial_scale", 1000.0}}, OptionValues{{"minimum_scale", 0.3}},
        OptionValues{{"initial_scale", 1.0}, {"minimum_scale", 2.0}}}) {
    EXPECT_EQ(error_of([&] { Policy("fp16", options); }).code(), CIUIC_INVALID);
  }
}

/// huggingface/transformers#34053: overflows after a resume, as the scale and its counters were
/// lost.
TEST(Fp16, B037_SavesScaleAndCounters) {
  for (const char* scaler : {"deepspeed", "megatron"}) {
    const OptionValues options{
        {"scaler", std::string(scaler)}, {"window", int64_t{10}}, {"initial_scale", 1024.0}};
    Policy straight("fp16", options);
    (void)straight.scales("OOOGGGGGGG");  // hysteresis 2: two halvings, then 7 clean steps
    ASSERT_EQ(straight.scale(), 256);
    MemoryState state;
    straight.instance().save(state);
    Policy resumed("fp16", options);
    resumed.instance().load(state);
    EXPECT_EQ(resumed.scale(), 256);
    EXPECT_EQ(resumed.scales("GGGGOOG"), straight.scales("GGGGOOG")) << scaler;
  }
}

/// pytorch/pytorch#55585: three overflows at the start. The first applied update is the schedule's
/// first; the scale fell by two halvings meanwhile.
TEST(Fp16, B010_ThreeOverflowsBeforeTheFirstUpdate) {
  Policy fp16("fp16");
  EXPECT_THAT(fp16.scales("OOOG"), ElementsAre(65536, 32768, 16384, 16384));
}

/// milesial/Pytorch-UNet#468: gradients are unscaled before they are clipped. A scale that is a
/// power of two leaves no trace.
TEST(Fp16, B011_UnscalesBeforeClipping) {
  Policy fp16("fp16", {{"scaler", std::string("static")}, {"initial_scale", 1024.0}});
  const auto scale = static_cast<float>(fp16.scale());
  const float scaled[] = {3.0F * scale, 4.0F * scale};
  const double unscale = 1 / fp16.scale();
  const double norm = std::hypot(scaled[0] * unscale, scaled[1] * unscale);
  EXPECT_EQ(norm, 5);
  const double factor = unscale * std::min(1.0, 1 / (norm + 1e-6));
  EXPECT_NEAR(-scaled[0] * factor, -0.6, 1e-6);
  EXPECT_NEAR(-scaled[1] * factor, -0.8, 1e-6);
}

/// deepspeedai/DeepSpeed#8415 and PR#7839: in bf16 (and fp32, fp8) nothing scales the loss, also not
/// after steps with non-finite gradients, so nothing is divided out either.
TEST(PrecisionPolicies, B013_OthersNeverScale) {
  for (const char* name : {"fp32", "bf16", "fp8_block"}) {
    Policy policy(name);
    EXPECT_EQ(policy.scale(), 1) << name;
    EXPECT_THAT(policy.scales("GOOOGOG"), ElementsAre(1, 1, 1, 1, 1, 1, 1)) << name;
  }
}

TEST(Bf16, WarnsOnceWhenItHasNoMasters) {
  const Policy pure("bf16", {{"masters", false}});
  ASSERT_EQ(pure.host().logs().size(), 1U);
  EXPECT_EQ(pure.host().logs()[0].level, CIUIC_LOG_WARN);
  EXPECT_THAT(pure.host().logs()[0].message, HasSubstr("updates below 1/512"));
  EXPECT_TRUE(Policy("bf16").host().logs().empty());
}

}  // namespace
}  // namespace ciuic::testing
