// SPDX-License-Identifier: MIT
#include "split_index.h"

#include <nlohmann/json.hpp>

#include "checkpoint_format/files.h"
#include "checkpoint_format/strict_json.h"
#include "checkpoint_format/tensor_types.h"

namespace ciuic::plugins::safetensors {

using checkpoint::damaged;
using checkpoint::printable;
using nlohmann::json;

WeightMap parse_split_index(std::string_view text, const std::string& where) {
  const json index = checkpoint::parse_strict(text, where);
  const json& map = checkpoint::member(index, "weight_map", where);
  if (!map.is_object()) {
    damaged(where, "\"weight_map\" is no object");
  }
  WeightMap files;
  for (const auto& [tensor, file] : map.items()) {
    if (!file.is_string() || !checkpoint::is_plain_name(file.get_ref<const std::string&>())) {
      damaged(where, "\"" + printable(tensor) + "\" lies in " + printable(file.dump()) +
                         ", which is no name of a file in this folder");
    }
    files.emplace(tensor, file.get<std::string>());
  }
  return files;
}

std::string make_split_index(const WeightMap& map, uint64_t total_bytes) {
  const json index = {{"metadata", {{"total_size", total_bytes}}}, {"weight_map", map}};
  return index.dump(2) + "\n";
}

}  // namespace ciuic::plugins::safetensors
