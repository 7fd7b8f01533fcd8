// SPDX-License-Identifier: MIT
//
// Is what an archive holds this model? Compared field by field and tensor by tensor, and all
// differences are said at once.
#pragma once

#include <string>

#include "core/model/model_config.h"
#include "core/train/state_io.h"

namespace ciuic::core {

/// The archive's config.json. Throws Failure (Storage) when there is none or it cannot be read.
ModelConfig model_of(const Archive& archive);

/// Throws Failure (Storage) that lists the fields in which the archive's model differs.
void check_same_model(const Archive& archive, const ModelConfig& expected);

/// Throws Failure (Storage) that lists every tensor that is missing, has another shape, or belongs
/// to no parameter.
void check_tensors(const ArchiveSource& source, const ModelConfig& model, const std::string& file);

/// Router biases (fp32 [E] each) by name, from value/<name>; one that the archive lacks stays zero.
void load_expert_biases(const TensorSource& source,
                        const std::vector<std::pair<std::string, at::Tensor>>& biases);

}  // namespace ciuic::core
