// SPDX-License-Identifier: MIT
//
// The format's unit: a piece of a tensor (with its place) or a blob, and how many of them become a
// string of bytes that ends in a checksum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/checkpoint.h>
#include <ciuic/view.hpp>

namespace ciuic::mutants::checkpoint {

struct Record {
  std::string key;
  bool is_blob = false;
  ciuic_dtype dtype{};
  std::vector<int64_t> shape, offset, box;
  int64_t begin = 0, count = 0;
  std::string bytes;
};

/// FNV-1a, 64 bit.
[[nodiscard]] uint64_t checksum(std::string_view bytes);
[[nodiscard]] std::string encode(const std::vector<Record>& records, uint64_t step);
/// Throws DATA_LOSS for what encode did not write. Does not look at the checksum.
[[nodiscard]] std::vector<Record> decode(std::string_view bytes);
/// Of the last 8 bytes.
[[nodiscard]] uint64_t stored_checksum(std::string_view bytes);

/// Row-major index in the whole tensor of element `index` of a box.
[[nodiscard]] int64_t global_index(const std::vector<int64_t>& shape, const int64_t* offset,
                                   const int64_t* box, int64_t index);
/// Where element `index` of a strided tensor lies.
[[nodiscard]] char* element_at(const ciuic_tensor& tensor, int64_t index);
/// A record of everything but the bytes. Throws INVALID for a place outside of its tensor.
[[nodiscard]] Record describe(std::string_view key, const ciuic_place& place,
                              const ciuic_tensor& tensor);
/// Its elements, in row-major order.
[[nodiscard]] std::string gather(const ciuic_tensor& tensor);

}  // namespace ciuic::mutants::checkpoint
