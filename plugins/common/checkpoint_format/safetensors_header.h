// SPDX-License-Identifier: MIT
//
// The safetensors container: 8 bytes of little-endian length, a JSON header, one buffer of data.
// https://github.com/huggingface/safetensors#format
//
// The reader accepts what the reference reader accepts and nothing else, but for two refusals of
// its own: names with a NUL, and empty shapes whose other dimensions overflow. Every number is
// checked before it is used.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/types.h>

#include "checkpoint_format/files.h"

namespace ciuic::plugins::checkpoint {

inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct TensorInfo {
  std::string name;
  ciuic_dtype dtype{};
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the start of the data
};

struct SafetensorsHeader {
  uint64_t data_offset = 0;         // bytes from the start of the file
  std::vector<TensorInfo> tensors;  // by offset
  std::map<std::string, std::string> metadata;
};

/// The 8 bytes and the header of a file of `file_bytes` bytes, their length checked. Throws
/// DATA_LOSS.
[[nodiscard]] std::string read_safetensors_prefix(const File& file, uint64_t file_bytes);

/// Throws DATA_LOSS naming `where` and what is wrong. `prefix` is what read_safetensors_prefix
/// returned.
[[nodiscard]] SafetensorsHeader parse_safetensors_prefix(std::string_view prefix,
                                                         uint64_t file_bytes,
                                                         const std::string& where);

[[nodiscard]] SafetensorsHeader read_safetensors_header(const File& file);

/// The prefix of a file that holds these tensors in this order. Sets begin and end; the data starts
/// 8-byte aligned.
[[nodiscard]] std::string make_safetensors_prefix(
    std::vector<TensorInfo>& tensors, const std::map<std::string, std::string>& metadata);

}  // namespace ciuic::plugins::checkpoint
