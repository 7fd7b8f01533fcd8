// SPDX-License-Identifier: MIT
//
// A place as a range of the whole tensor's elements in row-major order: all that files know about.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ciuic/abi/types.h>

namespace ciuic::plugins::checkpoint {

struct FlatRange {
  std::vector<int64_t> shape;  // of the whole tensor
  int64_t total = 0;           // its elements
  int64_t begin = 0;
  int64_t count = 0;
};

/// Where `tensor`'s elements lie in the whole one. A box that is no range of it (a column of a
/// matrix) is UNIMPLEMENTED; what cannot be at all is INVALID.
[[nodiscard]] FlatRange flat_range(std::string_view key, const ciuic_place& place,
                                   const ciuic_tensor& tensor);

}  // namespace ciuic::plugins::checkpoint
