// SPDX-License-Identifier: MIT
//
// A model's values from one archive to another: how training checkpoints become Hugging Face
// folders, and folders other folders. No LibTorch.
#pragma once

#include <string>

#include "core/plugin/checkpoint.h"

namespace ciuic::core {

/// Writes the values of `from` (its masters, where it has both) and its config.json to `target`,
/// with the copies that a Hugging Face folder has of them (hf_names.h). Memory: a piece of a tensor
/// at a time, and what the plugin keeps. Returns the number of tensors. Throws Failure (Storage).
size_t export_model(const Archive& from, const CheckpointPlugin& plugin, const std::string& target);

}  // namespace ciuic::core
