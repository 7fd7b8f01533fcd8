// SPDX-License-Identifier: MIT
//
// A precision policy on the test bench: an instance with its host, the modules of a small model
// attached, and calls with structs that end where nothing may be touched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/abi/precision.h>
#include <ciuic/testing/conformance.hpp>
#include <ciuic/testing/features.hpp>
#include <ciuic/testing/guarded_struct.hpp>
#include <ciuic/testing/memory_state.hpp>
#include <ciuic/testing/reference_tensor.hpp>
#include <ciuic/testing/reference_threads.hpp>

namespace ciuic::testing {

struct Module {
  uint32_t id;
  const char* name;
};
/// Ids are neither dense nor sorted.
inline constexpr Module kModules[] = {{70, "model.embed_tokens"},
                                      {12, "model.layers.0.self_attn.q_a_proj"},
                                      {13, "model.layers.0.mlp.gate_proj"},
                                      {14, "model.layers.0.mlp.down_proj"},
                                      {30, "model.layers.3.mlp.gate"},
                                      {31, "model.layers.3.mlp.gate.e_score_correction_bias"},
                                      {32, "model.layers.3.mlp.experts.gate_proj"},
                                      {33, "model.layers.3.mlp.shared_experts.up_proj"},
                                      {3, "model.layers.0.input_layernorm"},
                                      {71, "model.norm"},
                                      {72, "lm_head"}};
inline constexpr uint32_t kFirstRole = CIUIC_ROLE_VALUE;
inline constexpr uint32_t kLastRole = CIUIC_ROLE_ACTIVATION_GRAD;
const char* role_name(uint32_t role);
const char* pass_name(uint32_t pass);

/// The option of that name that a plugin declares, or nullptr.
const ciuic_option_spec* spec_of(const ciuic_descriptor& descriptor, std::string_view key);
/// The option "scaler" of a policy with several rules of its loss scale, as the instance will see
/// it: "deepspeed", "megatron", "static". Empty: it has no such option.
std::string scaler_of(const TestContext& context);

class PolicyBench {
 public:
  explicit PolicyBench(const TestContext& context, Seat seat = {}, bool attached = true);
  PolicyBench(const PolicyBench&) = delete;
  PolicyBench& operator=(const PolicyBench&) = delete;

  [[nodiscard]] const ciuic_precision_vt& vt() const {
    return instance_.table<ciuic_precision_vt>();
  }
  [[nodiscard]] const PluginInstance& instance() const { return instance_; }
  [[nodiscard]] Host host() const { return host_.host(); }

  void attach() const;
  [[nodiscard]] ciuic_dtype dtype_for(std::string_view module, uint32_t role) const;
  [[nodiscard]] uint32_t hooks(uint32_t module) const {
    return vt().hooks(instance_.self(), module, {CIUIC_DEVICE_CPU, 0});
  }
  [[nodiscard]] double loss_scale() const { return vt().loss_scale(instance_.self()); }

  /// The next step's outcome. The error of a policy that gives up, as some do when the scale is at
  /// its minimum.
  std::optional<Error> update(bool is_finite);

  /// Nothing: the policy has no such format (UNIMPLEMENTED), or no formats at all.
  [[nodiscard]] std::optional<ciuic_format> format(const ciuic_cast& cast) const;
  /// Throws what cast reports.
  void cast(const ciuic_cast& cast) const;
  /// The code that gemm returns, CIUIC_OK when it is done; UNIMPLEMENTED where it has none.
  [[nodiscard]] int32_t gemm(const ciuic_gemm& gemm) const;
  [[nodiscard]] const std::string& gemm_message() const { return gemm_message_; }

  void save(MemoryState& state) const;
  void load(MemoryState& state) const;

  /// Steps and applied updates so far, for an instance that goes on from another's state.
  [[nodiscard]] uint64_t steps() const { return step_; }
  void go_on_from(const PolicyBench& other);

 private:
  const ciuic_descriptor& descriptor_;
  TestHost host_;
  ReferenceThreads threads_;
  ReferenceTensor tensors_;
  PluginInstance instance_;
  uint64_t step_ = 0;
  uint64_t update_ = 0;
  GuardedStruct<ciuic_precision_update> update_request_;  // one for all: runs have many updates
  mutable std::string gemm_message_;
};

}  // namespace ciuic::testing
