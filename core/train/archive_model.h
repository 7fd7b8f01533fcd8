// SPDX-License-Identifier: MIT
//
// The model that an archive was written by: its config.json. No tensors, no LibTorch.
#pragma once

#include "core/model/model_config.h"
#include "core/plugin/checkpoint.h"

namespace ciuic::core {

struct ArchivedModel {
  /// config.json, less multi-token-prediction layers that the archive does not hold.
  ModelConfig config;
  std::vector<std::string> notes;  // a line each, for a person
};

/// Throws Failure (Storage) when there is no config.json or it cannot be read.
ArchivedModel read_model(const Archive& archive);
/// As read_model, the configuration alone.
ModelConfig model_of(const Archive& archive);

/// Throws Failure (Storage) that lists the fields in which the archive's model differs.
void check_same_model(const Archive& archive, const ModelConfig& expected);

}  // namespace ciuic::core
