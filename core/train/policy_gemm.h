// SPDX-License-Identifier: MIT
//
// From the layers to the gemm of a precision plugin: which modules it takes, and a product as the
// ABI has it.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "core/model/parameter_specs.h"
#include "core/model/policy_products.h"
#include "core/plugin/precision.h"

namespace ciuic::core {

class PolicyGemm final : public PolicyProducts {
 public:
  /// Attaches the modules to the plugin: one for each parameter, with its place as its id, and one
  /// more for each projection of a layer's experts ("model.layers.3.mlp.experts.gate_proj").
  /// `precision` and `specs` must outlive this object. Throws Failure (Plugin) for a policy that
  /// takes products which the layers do not hand out.
  PolicyGemm(const PrecisionPlugin& precision, std::span<const ParameterSpec> specs);

  /// A hook for each parameter, in their order; nullptr: the policy takes nothing of it.
  [[nodiscard]] const std::vector<const ModuleHook*>& hooks() const { return by_parameter_; }

  /// Of a parameter, or of a group of experts.
  [[nodiscard]] const std::string& module_name(uint32_t module) const { return names_.at(module); }

  void compute(const PolicyProduct& product) const override;

 private:
  uint32_t attached(const std::string& name);

  const PrecisionPlugin& precision_;
  std::deque<std::string> names_;
  std::vector<ciuic_module> modules_;
  std::vector<ModuleHook> hooks_;
  std::vector<const ModuleHook*> by_parameter_;
};

/// "model.layers.0.self_attn.q_a_proj.weight" is the parameter, the rest before ".weight" (or
/// ".bias") its module.
std::string module_of(const std::string& parameter);

}  // namespace ciuic::core
