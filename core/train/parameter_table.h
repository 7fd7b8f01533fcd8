// SPDX-License-Identifier: MIT
//
// The model's parameters as plugins see them: shapes, dtypes by the precision policy, granules by the
// update rule, what the configuration says of single ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ciuic/abi/optimizer.h>

#include "core/config/run_config.h"
#include "core/model/parameter_specs.h"
#include "core/plugin/precision.h"

namespace ciuic::core {

class ParameterTable {
 public:
  /// Groups are ids of those whose ranks replicate a parameter. `specs` must outlive this object.
  ParameterTable(std::span<const ParameterSpec> specs, const PrecisionPlugin& precision,
                 const Instance& optimizer, const OptimizerSection& rules, uint32_t data_group,
                 uint32_t expert_group);
  ParameterTable(const ParameterTable&) = delete;
  ParameterTable& operator=(const ParameterTable&) = delete;

  [[nodiscard]] const std::vector<ciuic_param>& parameters() const { return parameters_; }

 private:
  std::vector<std::string> names_;  // of the modules
  std::vector<std::vector<int64_t>> offsets_;
  std::vector<ciuic_param> parameters_;
};

/// State tensors that the optimizer keeps for a parameter.
std::vector<ciuic_state_spec> optimizer_state(const Instance& optimizer,
                                              const ciuic_param& parameter);

}  // namespace ciuic::core
