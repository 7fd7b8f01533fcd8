// SPDX-License-Identifier: MIT
//
// Do an archive's tensors fit a model? All differences are said at once.
#pragma once

#include <string>

#include "core/model/model_config.h"
#include "core/train/state_io.h"

namespace ciuic::core {

/// Throws Failure (Storage) that lists every tensor that is missing, has another shape, is no
/// floating-point one, or belongs to no parameter. Copies and derived buffers of a Hugging Face
/// folder (hf_names.h) may be there, and so may multi-token-prediction layers of the folder's own
/// configuration that `model` does without.
void check_tensors(const ArchiveSource& source, const ModelConfig& model, const std::string& file);

/// Throws Failure (Storage) that lists every copy (hf_names.h) that differs from its parameter.
/// Reads both whole, some at a time.
void check_copies(const ArchiveSource& source, const ModelConfig& model, const std::string& file);

/// Router biases (fp32 [E] each) by name, from value/<name>; one that the archive lacks stays zero.
void load_expert_biases(const TensorSource& source,
                        const std::vector<std::pair<std::string, at::Tensor>>& biases);

}  // namespace ciuic::core
