// SPDX-License-Identifier: MIT
//
// model.safetensors.index.json: which file of a model folder holds which tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ciuic::plugins::safetensors {

using WeightMap = std::map<std::string, std::string>;  // tensor -> file

/// Reads {"weight_map": {tensor: file}, ...}; what else stands there is not looked at. Every file
/// is a plain name in the same folder. Throws DATA_LOSS naming `where`.
[[nodiscard]] WeightMap parse_split_index(std::string_view text, const std::string& where);

/// The text of an index. `total_bytes`: of all tensors' data.
[[nodiscard]] std::string make_split_index(const WeightMap& map, uint64_t total_bytes);

}  // namespace ciuic::plugins::safetensors
