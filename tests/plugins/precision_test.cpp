// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plugins.h"

namespace ciuic::testing {
namespace {

const std::vector<std::string> kMatrices = {"model.embed_tokens",
                                            "lm_head",
                                            "model.layers.0.self_attn.q_a_proj",
                                            "model.layers.0.self_attn.kv_a_proj_with_mqa",
                                            "model.layers.0.mlp.gate_proj",
                                            "model.layers.3.mlp.experts.7.down_proj",
                                            "model.layers.3.mlp.shared_experts.up_proj",
                                            "model.layers.61.eh_proj"};
const std::vector<std::string> kSensitive = {"model.norm",
                                             "model.layers.0.input_layernorm",
                                             "model.layers.0.post_attention_layernorm",
                                             "model.layers.0.self_attn.kv_a_layernorm",
                                             "model.layers.61.enorm",
                                             "model.layers.3.mlp.gate",
                                             "model.layers.3.mlp.gate.e_score_correction_bias"};

class Policy {
 public:
  explicit Policy(const char* name)
      : plugin_(load_plugin(name)), instance_(plugin_.create(host_)) {}
  std::string dtype(const std::string& module, uint32_t role) const {
    ciuic_dtype out{};
    instance_.check(table().dtype_for(instance_.self(), to_str(module), role, &out));
    return dtype_name(out);
  }
  const ciuic_precision_vt& table() const { return instance_.table<ciuic_precision_vt>(); }
  ciuic_instance* self() const { return instance_.self(); }

 private:
  TestHost host_;
  LoadedPlugin plugin_;
  PluginInstance instance_;
};

TEST(Fp32, IsFp32Everywhere) {
  const Policy fp32("fp32");
  for (uint32_t role = CIUIC_ROLE_VALUE; role <= CIUIC_ROLE_ACTIVATION_GRAD; ++role) {
    for (const std::string& module : kMatrices) {
      EXPECT_EQ(fp32.dtype(module, role), "f32");
    }
    EXPECT_EQ(fp32.dtype("model", role), "f32");
  }
  EXPECT_EQ(fp32.table().loss_scale(fp32.self()), 1.0);
  EXPECT_EQ(fp32.table().hooks(fp32.self(), 0, {CIUIC_DEVICE_CPU, 0}), 0U);
}

TEST(Bf16, MatricesAreBf16) {
  const Policy bf16("bf16");
  for (const std::string& module : kMatrices) {
    EXPECT_EQ(bf16.dtype(module, CIUIC_ROLE_VALUE), "bf16") << module;
    EXPECT_EQ(bf16.dtype(module, CIUIC_ROLE_COMPUTE), "bf16") << module;
  }
}

TEST(Bf16, NormsAndRouterAreFp32) {
  const Policy bf16("bf16");
  for (const std::string& module : kSensitive) {
    EXPECT_EQ(bf16.dtype(module, CIUIC_ROLE_VALUE), "f32") << module;
    EXPECT_EQ(bf16.dtype(module, CIUIC_ROLE_COMPUTE), "f32") << module;
  }
}

TEST(Bf16, WhatAccumulatesIsFp32) {
  const Policy bf16("bf16");
  for (const uint32_t role :
       {CIUIC_ROLE_GRAD, CIUIC_ROLE_REDUCE, CIUIC_ROLE_MASTER, CIUIC_ROLE_MOMENT}) {
    EXPECT_EQ(bf16.dtype("lm_head", role), "f32");
    EXPECT_EQ(bf16.dtype("model.norm", role), "f32");
  }
  EXPECT_EQ(bf16.dtype("model", CIUIC_ROLE_ACTIVATION), "bf16");
  EXPECT_EQ(bf16.dtype("model", CIUIC_ROLE_ACTIVATION_GRAD), "bf16");
  EXPECT_EQ(bf16.table().loss_scale(bf16.self()), 1.0);
}

}  // namespace
}  // namespace ciuic::testing
