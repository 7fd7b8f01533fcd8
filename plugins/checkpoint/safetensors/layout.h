// SPDX-License-Identifier: MIT
//
// Where each tensor of a save goes, known before the first byte is written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint_format/put_buffer.h"
#include "export_type.h"
#include "split_index.h"

namespace ciuic::plugins::safetensors {

inline constexpr const char* kModelName = "model.safetensors";

/// One tensor: what it is put as, what it is written as, and where.
struct Target {
  std::string name;
  std::vector<int64_t> shape;
  ciuic_dtype put{}, stored{};
  size_t file = 0;
  uint64_t offset = 0;                   // of its data, from the start of the file
  std::optional<uint64_t> scale_offset;  // of its scales, for FP8 blocks
};

struct Layout {
  struct File {
    std::string name;
    std::string prefix;  // the length and the header
  };
  std::vector<File> files;                             // one at least
  std::map<std::string, Target, std::less<>> targets;  // by key
  uint64_t data_bytes = 0;

  /// All files' bytes.
  [[nodiscard]] uint64_t file_bytes() const;
  [[nodiscard]] WeightMap weight_map() const;
};

using DescribedTensors = std::map<std::string, checkpoint::Described, std::less<>>;

/// A file that holds these tensors, under their keys, as they are.
[[nodiscard]] Layout file_layout(const DescribedTensors& tensors,
                                 const std::map<std::string, std::string>& metadata);

/// A model folder's files: model.safetensors where all data fits `max_file_bytes`, else
/// model-00001-of-0000N.safetensors and so on, filled in the order of layers; a tensor and its
/// scales stay together, and one that is larger has a file of its own. `key_prefix` is what keys
/// have and names have not.
[[nodiscard]] Layout folder_layout(const DescribedTensors& tensors, std::string_view key_prefix,
                                   ExportType type, uint64_t max_file_bytes);

}  // namespace ciuic::plugins::safetensors
