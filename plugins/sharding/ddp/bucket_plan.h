// SPDX-License-Identifier: MIT
//
// Which gradients travel together, and in which order: a pure function of the parameters, so every
// rank finds the same answer.
#pragma once

#include <cstdint>
#include <vector>

#include <ciuic/abi/optimizer.h>
#include <ciuic/view.hpp>

namespace ciuic::plugins::ddp {

/// Every parameter starts on a multiple of this many bytes.
constexpr int64_t kAlignment = 64;
constexpr int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

inline int64_t bytes_of(const ciuic_param& p, ciuic_dtype dtype) {
  return p.num_elements * dtype_bytes(dtype);
}

/// The parameter whose storage parameter `id` uses: itself, or the one it is tied to.
uint64_t root_of(ArrayView<ciuic_param> params, uint64_t id);

/// Has a gradient of its own: not tied, not frozen, not empty.
bool has_gradient(const ciuic_param& p);

struct Bucket {
  uint32_t group = 0;
  ciuic_dtype grad{}, reduce{};
  std::vector<uint64_t> params;  // in the order of their memory
  std::vector<uint32_t> units;   // ascending: all that add to these gradients
  int64_t bytes = 0;             // with padding
};

/// Buckets in the order in which backward completes them, last unit first. A bucket holds
/// parameters of one group and type; it never splits a parameter, and one larger than
/// `bucket_bytes` has a bucket to itself. A tied parameter is complete after the first of its
/// units, which backward reaches last.
std::vector<Bucket> plan_buckets(ArrayView<ciuic_param> params, int64_t bucket_bytes);

/// A rank's part of a tensor that all ranks of its group hold: [begin, end), of equal size over all
/// tensors together.
struct Range {
  int64_t begin, end;
};
/// `before` elements of other tensors come before this one of `count`, of `total` in all.
Range share_of(int64_t before, int64_t count, int64_t total, int32_t rank, int32_t size);

}  // namespace ciuic::plugins::ddp
