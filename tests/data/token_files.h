// SPDX-License-Identifier: MIT
//
// Files of tokens: as others write them, and what is in one.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/data/token_file.h"

namespace ciuic::core {

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::string raw(T value) {
  return raw(std::vector<T>{value});
}

/// Megatron's index of sequences of these lengths; each document has the sequences that
/// `documents` counts from 0.
inline std::string megatron_index(uint8_t code, int64_t width, const std::vector<int32_t>& lengths,
                                  const std::vector<int64_t>& documents) {
  std::vector<int64_t> pointers;
  int64_t at = 0;
  for (const int32_t length : lengths) {
    pointers.push_back(at);
    at += length * width;
  }
  return std::string("MMIDIDX\0\0", 9) + raw(uint64_t{1}) + raw(code) +
         raw(uint64_t{lengths.size()}) + raw(uint64_t{documents.size()}) + raw(lengths) +
         raw(pointers) + raw(documents);
}

/// All of a file's tokens, as they stand there.
inline std::vector<int64_t> tokens_of(const TokenFile& file) {
  std::vector<int64_t> tokens(static_cast<size_t>(file.num_tokens()));
  file.copy(0, file.num_tokens(), tokens.data());
  return tokens;
}

}  // namespace ciuic::core
