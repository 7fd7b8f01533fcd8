// SPDX-License-Identifier: MIT
//
// What the tests save: named tensors and blobs with their bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ciuic/view.hpp>

namespace ciuic::testing::checkpoint {

inline constexpr ciuic_dtype kBool{CIUIC_DTYPE_BOOL, 8, 1};
inline constexpr ciuic_dtype kF8E4M3{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1};
inline constexpr ciuic_dtype kF8E5M2{CIUIC_DTYPE_FLOAT8_E5M2, 8, 1};

/// A tensor with its elements, or a blob.
struct Value {
  bool is_blob = false;
  ciuic_dtype dtype{};
  std::vector<int64_t> shape;
  std::string bytes;

  [[nodiscard]] int64_t elements() const;
  [[nodiscard]] bool operator==(const Value& o) const;
};
using State = std::map<std::string, Value>;

[[nodiscard]] Value blob(std::string bytes);
/// Elements of all bit patterns (0 and 1 for bool), from a seed.
[[nodiscard]] Value random_tensor(ciuic_dtype dtype, std::vector<int64_t> shape, uint64_t seed);
/// Parameters and config.json: what every format must hold.
[[nodiscard]] State model_state(uint64_t seed);
/// And masters, moments and the trainer's own blob.
[[nodiscard]] State training_state(uint64_t seed);

/// "f32[5,4]", "a blob of 12 bytes".
[[nodiscard]] std::string describe(const Value& value);
/// A key or name for a message: unprintable bytes escaped, long ones cut.
[[nodiscard]] std::string shown(const std::string& text);
/// The first difference; empty when there is none.
[[nodiscard]] std::string difference(const State& got, const State& expected);

/// Elements [begin, begin + count) of `total` that are a rank's even share.
struct Share {
  int64_t begin, count;
};
[[nodiscard]] Share share_of(int64_t total, int rank, int world);

}  // namespace ciuic::testing::checkpoint
