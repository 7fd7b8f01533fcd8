// SPDX-License-Identifier: MIT
//
// The model that an archive was written by: its config.json. No tensors, no LibTorch.
#pragma once

#include "core/model/model_config.h"
#include "core/plugin/checkpoint.h"

namespace ciuic::core {

/// The archive's config.json. Throws Failure (Storage) when there is none or it cannot be read.
ModelConfig model_of(const Archive& archive);

/// Throws Failure (Storage) that lists the fields in which the archive's model differs.
void check_same_model(const Archive& archive, const ModelConfig& expected);

}  // namespace ciuic::core
