// SPDX-License-Identifier: MIT
#include "core/train/parameter_table.h"

#include <ciuic/view.hpp>

#include "core/plugin/shown_array.h"
#include "core/train/parameter_rules.h"
#include "core/train/policy_gemm.h"

namespace ciuic::core {

ParameterTable::ParameterTable(std::span<const ParameterSpec> specs,
                               const PrecisionPlugin& precision, const Instance& optimizer,
                               const OptimizerSection& rules, uint32_t data_group,
                               uint32_t expert_group) {
  names_.reserve(specs.size());
  offsets_.reserve(specs.size());
  for (const ParameterSpec& spec : specs) {
    names_.push_back(module_of(spec.name));
    const std::string& module = names_.back();
    offsets_.emplace_back(spec.shape.size(), 0);
    ciuic_param p{};
    p.struct_size = sizeof(p);
    const ParameterRule rule =
        rule_of(rules, spec.is_tied() ? specs[static_cast<size_t>(spec.tied_to)].name : spec.name);
    p.flags = CIUIC_PARAM_IN_NORM | (spec.is_expert ? uint32_t{CIUIC_PARAM_EXPERT} : 0u) |
              (rule.is_frozen ? uint32_t{CIUIC_PARAM_FROZEN} : 0u);
    p.id = parameters_.size();
    p.name = to_str(spec.name);
    p.unit = static_cast<uint32_t>(spec.unit);
    p.group = spec.is_expert ? expert_group : data_group;
    p.tied_to = static_cast<int32_t>(spec.tied_to);
    p.value = precision.dtype_for(module, CIUIC_ROLE_VALUE);
    p.grad = precision.dtype_for(module, CIUIC_ROLE_GRAD);
    p.reduce = precision.dtype_for(module, CIUIC_ROLE_REDUCE);
    p.master = precision.dtype_for(module, CIUIC_ROLE_MASTER);
    p.ndim = static_cast<int32_t>(spec.shape.size());
    p.shape = p.global_shape = spec.shape.data();
    p.offset = offsets_.back().data();
    p.num_elements = spec.num_elements();
    p.weight_decay = rule.weight_decay;
    p.lr_scale = rule.learning_rate;
    optimizer.check(optimizer.vt<ciuic_optimizer_vt>().granule(optimizer.self(), &p, &p.granule),
                    "optimizer.granule");
    parameters_.push_back(p);
  }
}

std::vector<ciuic_state_spec> optimizer_state(const Instance& optimizer,
                                              const ciuic_param& parameter) {
  ciuic_array specs{};
  optimizer.check(
      optimizer.vt<ciuic_optimizer_vt>().state_spec(optimizer.self(), &parameter, &specs),
      "optimizer.state_spec");
  std::vector<ciuic_state_spec> out;
  for (const ciuic_state_spec& spec :
       shown_array<ciuic_state_spec>(specs, optimizer, "optimizer.state_spec")) {
    out.push_back(spec);
  }
  return out;
}

}  // namespace ciuic::core
