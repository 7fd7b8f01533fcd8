// SPDX-License-Identifier: MIT
//
// The tokenizer that belongs to a model: a Hugging Face folder brings its own, a run keeps a copy of
// the one it was trained with.
#pragma once

#include <optional>
#include <string>

namespace ciuic::core {

/// The tokenizer.json of a model: in its folder, or in that of the run whose checkpoint it is.
/// Nothing: a token is a byte.
std::optional<std::string> tokenizer_of_model(const std::string& model_folder);

/// Copies the file into a run's folder or an exported model's, as tokenizer.json. Throws Failure
/// (Storage).
void keep_tokenizer(const std::string& file, const std::string& folder);

}  // namespace ciuic::core
